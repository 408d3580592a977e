// Atomic operations and fences of threads: atomicAdd and its like, and what cuda::atomic_ref makes the compiler call.
#include <cstdint>

#include "executor/polling.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

void fence() {
  if (!self->before_fence.seen.empty()) self->clocks.join(self->before_fence);
  self->has_fenced = true;
  self->at_fence = self->clocks;
  self->tick();
}

enum class Kind { load, store, change };

void operate(const void* pointer, std::uint32_t bytes, Kind kind, const void* place) {
  const Place at = place_of(pointer);
  const bool writes = kind != Kind::load;
  count_access(pointer, place);
  if (at.block == nullptr || !inside_shared(*at.block, at.address, bytes)) {
    access(pointer, bytes, {.writes = writes, .atomic = true}, place);
    if (is_global(pointer)) order_global_atomic(pointer);
    return;
  }
  const Cell& cell = at.block->cells[at.address];
  const auto found = at.block->atomics.find(at.address);
  // Atomic operations do not race with each other, only with ordinary ones.
  if (found == at.block->atomics.end() || cell.state != ByteState::written || cell.write_place != nullptr) {
    const Accessor who{.name = "an atomic operation", .place = place};
    const bool readable = kind == Kind::store || check_read(*at.block, at.address, bytes, who);
    if (readable && writes) check_write(*at.block, at.address, bytes, who);
  }
  note_write(*at.block, at.address, bytes, self->agent, 0, ByteState::written, nullptr);
  Clocks& released = at.block->atomics[at.address];
  if (released.seen.empty()) released.reset(launch->agents);
  if (self->has_fenced) released.join(self->at_fence);
  self->acquire(released);
}

}  // namespace

void thread_fence() {
  const Entry entry;
  fence();
}

void Thread::acquire(const Clocks& released) {
  // The hardware keeps the order of one chain of atomic operations, with the fence before them alone. PTX asks for a
  // fence behind them, too (PTX ISA "Release and Acquire Patterns").
  if (!options().strict) return clocks.join(released);
  if (before_fence.seen.empty()) before_fence.reset(launch->agents);
  before_fence.join(released);
}

void atomic_access(const void* pointer, std::size_t size) {
  const Entry entry;
  operate(pointer, static_cast<std::uint32_t>(size), Kind::change, TMAOPS_PLACE);
}

namespace {

bool releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }
bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }

/// Calls `change()`, which works on `at`, as an operation of a kernel, or of the host where no kernel runs.
template <class T, class Change>
[[gnu::always_inline]] inline T ordered(const volatile T* at, Kind kind, int order, const Change& change) {
  const void* const pointer = const_cast<const T*>(at);
  if (!in_kernel || self->fiber.on_stack(pointer)) return change();
  const Entry entry;
  if (kind != Kind::load && releases(order)) fence();
  if (kind == Kind::store) note_progress();
  operate(pointer, sizeof(T), kind, TMAOPS_PLACE);
  const T result = change();
  if (kind != Kind::store && acquires(order)) fence();
  return result;
}

}  // namespace
}  // namespace tmaops::executor

#define TMAOPS_CHANGE(T, bits, name)                                                                       \
  T __tsan_atomic##bits##_##name(volatile T* at, T value, int order) {                                     \
    return ordered(at, Kind::change, order, [=] { return __atomic_##name(at, value, __ATOMIC_SEQ_CST); }); \
  }
#define TMAOPS_ATOMIC(T, bits)                                                                                      \
  T __tsan_atomic##bits##_load(const volatile T* at, int order) {                                                   \
    return ordered(at, Kind::load, order, [=] { return __atomic_load_n(at, __ATOMIC_SEQ_CST); });                   \
  }                                                                                                                 \
  void __tsan_atomic##bits##_store(volatile T* at, T value, int order) {                                            \
    ordered(at, Kind::store, order, [=] {                                                                           \
      __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                \
      return value;                                                                                                 \
    });                                                                                                             \
  }                                                                                                                 \
  T __tsan_atomic##bits##_exchange(volatile T* at, T value, int order) {                                            \
    return ordered(at, Kind::change, order, [=] { return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); });      \
  }                                                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T value, int order, int) {         \
    const T wanted = *expected;                                                                                     \
    *expected = ordered(at, Kind::change, order, [=] {                                                              \
      T found = wanted;                                                                                             \
      __atomic_compare_exchange_n(at, &found, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
      return found;                                                                                                 \
    });                                                                                                             \
    return *expected == wanted;                                                                                     \
  }                                                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* expected, T value, int order, int otherwise) { \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, otherwise);                    \
  }                                                                                                                 \
  TMAOPS_CHANGE(T, bits, fetch_add)                                                                                 \
  TMAOPS_CHANGE(T, bits, fetch_sub)                                                                                 \
  TMAOPS_CHANGE(T, bits, fetch_and)                                                                                 \
  TMAOPS_CHANGE(T, bits, fetch_or)                                                                                  \
  TMAOPS_CHANGE(T, bits, fetch_xor)

// The hooks of -fsanitize=thread, without the sanitizer (see shadow.cpp).
using namespace tmaops::executor;  // NOLINT(google-build-using-namespace)
extern "C" {
TMAOPS_ATOMIC(std::uint8_t, 8)
TMAOPS_ATOMIC(std::uint16_t, 16)
TMAOPS_ATOMIC(std::uint32_t, 32)
TMAOPS_ATOMIC(std::uint64_t, 64)
void __tsan_atomic_thread_fence(int order) {
  if (in_kernel && order != __ATOMIC_RELAXED) thread_fence();
}
void __tsan_atomic_signal_fence(int) {}
}
#undef TMAOPS_ATOMIC
#undef TMAOPS_CHANGE
