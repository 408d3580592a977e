// What src/executor/gdb.py calls in a program that has stopped: the threads of the kernel that runs, its barriers and
// its copies, in words.
#include <cstdio>
#include <map>

#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

/// Who waits for what, the first of those alike, or who can go on.
void print_threads() {
  std::map<std::string, std::pair<int, const Thread*>> kinds;
  for (const Thread* thread : launch->threads) {
    std::string text = "ready";
    if (thread == self) text = "runs";
    if (thread->state == Thread::State::ended) text = "ended";
    if (thread->state == Thread::State::waiting)
      text = "waits for " + thread->reason() + ", at " + source_line(thread->place);
    auto& [count, first] = kinds[text];
    if (count++ == 0) first = thread;
  }
  for (const auto& [text, threads] : kinds)
    std::printf("%5d from %s: %s\n", threads.first, name_of(*threads.second).c_str(), text.c_str());
}

void print_barriers() {
  for (const Block* block : launch->blocks)
    for (const auto& [address, barrier] : block->barriers)
      std::printf("block %d of the cluster, %s: %s%s; %zu threads wait; initialised at %s\n", block->rank,
                  spot(address).c_str(), state_of(barrier).c_str(), missing_at(barrier).c_str(), barrier.waiting.size(),
                  source_line(barrier.place).c_str());
}

void print_copies() {
  for (const auto& operation : launch->flying)
    std::printf("%s, issued at %s: %s\n", operation->words().c_str(), source_line(operation->place).c_str(),
                operation->has_read ? "has read, not yet written" : "has not begun");
  if (launch->flying.empty()) std::printf("no copy is under way\n");
}

/// Of a thread that has stopped, for gdb.py: call().
struct KeptVectorRegisters {
#if defined(__x86_64__)
  alignas(64) static inline unsigned char area[16384] = {};  // a fiber's stack is small
  [[gnu::target("xsave")]] KeptVectorRegisters() { __builtin_ia32_xsave64(area, -1); }
  [[gnu::target("xsave")]] ~KeptVectorRegisters() { __builtin_ia32_xrstor64(area, -1); }
#endif
};

}  // namespace
}  // namespace tmaops::executor

extern "C" {

/// `what`: t for threads, b for barriers, c for copies.
[[gnu::used]] void tmaops_executor_print(char what) {
  using namespace tmaops::executor;
  const KeptVectorRegisters kept;
  if (launch == nullptr) {
    std::printf("no kernel runs\n");
    return;
  }
  const bool before = std::exchange(in_kernel, false);
  if (what == 't') print_threads();
  if (what == 'b') print_barriers();
  if (what == 'c') print_copies();
  std::fflush(stdout);
  in_kernel = before;
}

/// Where the registers of a thread are saved: what tmaops_executor_find() found. Null where it runs or has ended.
[[gnu::used]] void* tmaops_executor_found = nullptr;

/// Looks for thread `index` of block `rank` of the cluster.
[[gnu::used]] void tmaops_executor_find(int index, int rank) {
  using namespace tmaops::executor;
  const KeptVectorRegisters kept;
  tmaops_executor_found = nullptr;
#if defined(__x86_64__)
  if (launch == nullptr) return;
  for (Thread* thread : launch->threads)
    if (thread->index == index && thread->block->rank == rank && thread != self && thread->has_begun &&
        thread->state != Thread::State::ended)
      tmaops_executor_found = thread->fiber.stack_pointer();
#else
  (void)index, (void)rank;
#endif
}
}
