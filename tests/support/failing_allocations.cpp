#include "support/failing_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace tmaops::test {
namespace {

std::atomic<bool> active{false};
std::atomic<std::int64_t> left{0};  // allocations that succeed until one fails
std::atomic<bool> all_after{false};
std::atomic<bool> one_failed{false};

bool fails() {
  if (!active.load()) return false;
  const std::int64_t before = left.fetch_sub(1);
  if (before > 0 || (before < 0 && !all_after.load())) return false;
  one_failed.store(true);
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails()) return nullptr;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

FailingAllocations::FailingAllocations(std::int64_t first, bool and_all) {
  left.store(first);
  all_after.store(and_all);
  one_failed.store(false);
  active.store(true);
}
FailingAllocations::~FailingAllocations() { active.store(false); }
bool FailingAllocations::failed() const { return one_failed.load(); }

}  // namespace tmaops::test

// The program's operators new and delete; those for arrays and sizes go through these.
void* operator new(std::size_t bytes) { return tmaops::test::allocate_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return tmaops::test::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return tmaops::test::allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
