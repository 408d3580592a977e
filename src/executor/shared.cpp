// Where a block's shared memory lies, and atomic operations and fences on it.
#include <cstring>

#include "executor/polling.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {

void* dynamic_shared() {
  const Entry entry;
  return self->block->window + kReservedBytes;
}

void* block_shared(const void* key, std::size_t bytes, std::size_t alignment) {
  const Entry entry;
  Launch& l = *launch;
  auto found = l.fixed.find(key);
  if (found == l.fixed.end()) {
    const std::size_t at = (l.fixed_end + alignment - 1) / alignment * alignment;
    const std::size_t end = at + bytes;
    const std::size_t fixed = end - kReservedBytes - l.dynamic_bytes;
    if (fixed > kMostFixedBytes || end - kReservedBytes > kMostSharedBytes)
      stop(Rule::bad_launch,
           std::to_string(fixed) + " bytes of block_shared beside " + std::to_string(l.dynamic_bytes) +
               " of dynamic shared memory: at most " + std::to_string(kMostFixedBytes) + ", and " +
               std::to_string(kMostSharedBytes) + " in all",
           TMAOPS_PLACE);
    for (Block* block : l.blocks) {
      std::fill(block->cells.begin() + l.fixed_end, block->cells.begin() + static_cast<std::ptrdiff_t>(end), Cell{});
      std::memset(block->window + l.fixed_end, kUnwritten, end - l.fixed_end);
      block->used_cells = static_cast<std::uint32_t>(end);
    }
    l.fixed_end = static_cast<std::uint32_t>(end);
    found = l.fixed.emplace(key, FixedShared{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)}).first;
  }
  return self->block->window + found->second.at;
}

void allow_unwritten_reads(int more) { self->unwritten_reads += more; }

std::uint32_t shared_address(const void* pointer) {
  const Entry entry;
  const Place at = place_of(pointer);
  if (at.block == nullptr)
    stop(Rule::outside_shared, "the shared address of a pointer to other memory is taken", TMAOPS_PLACE);
  return at.address;
}

void* shared_pointer(std::uint32_t address) {
  const Entry entry;
  return host_of(*self->block, address);
}

void thread_fence() {
  const Entry entry;
  if (!self->before_fence.seen.empty()) self->clocks.join(self->before_fence);
  self->has_fenced = true;
  self->at_fence = self->clocks;
  self->tick();
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
  const void* const place = TMAOPS_PLACE;
  const auto bytes = static_cast<std::uint32_t>(size);
  const Place at = place_of(pointer);
  count_access(pointer, place);
  if (at.block == nullptr || !inside_shared(*at.block, at.address, bytes)) {
    access(pointer, bytes, {.writes = true, .atomic = true}, place);
    order_global_atomic(pointer);
    return;
  }
  const Cell& cell = at.block->cells[at.address];
  const auto found = at.block->atomics.find(at.address);
  // Atomic operations do not race with each other, only with ordinary ones.
  if (found == at.block->atomics.end() || cell.state != ByteState::written || cell.write_place != nullptr) {
    const Accessor who{.name = "an atomic operation", .place = place};
    if (check_read(*at.block, at.address, bytes, who)) check_write(*at.block, at.address, bytes, who);
  }
  note_write(*at.block, at.address, bytes, self->agent, 0, ByteState::written, nullptr);
  Clocks& released = at.block->atomics[at.address];
  if (released.seen.empty()) released.reset(launch->agents);
  if (self->has_fenced) released.join(self->at_fence);
  self->acquire(released);
}

}  // namespace tmaops::executor
