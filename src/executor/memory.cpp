// The device's memory: allocations in one range of addresses, with gaps that belong to nobody.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <string>

#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc has it
constexpr std::size_t kGap = 256;
constexpr std::size_t kAllBytes = std::size_t{1} << 36;  // addresses, mapped when they are touched

unsigned char* map_addresses(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<unsigned char*>(memory);
}

unsigned char* global_memory() {
  static unsigned char* const memory = map_addresses(kAllBytes);
  return memory;
}

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::map<std::uintptr_t, std::size_t> allocations;  // address and bytes
// The last allocation that was hit: the next access mostly meets it again.
std::uintptr_t last_begin = 1;
std::uintptr_t last_end = 0;

}  // namespace

void* allocate(std::size_t bytes) {
  // The first gap that is large enough: what was given back is used again.
  const auto base = reinterpret_cast<std::uintptr_t>(global_memory());
  std::size_t at = kGap;
  for (const auto& [address, size] : allocations) {
    if (address - base >= at + rounded(bytes) + kGap) break;
    at = address - base + rounded(size) + kGap;
  }
  if (at + rounded(bytes) + kGap > kAllBytes) throw std::bad_alloc();
  allocations[base + at] = bytes;
  last_end = 0;
  return global_memory() + at;
}

void release(void* memory) {
  const auto found = allocations.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == allocations.end()) return;
  const std::size_t bytes = found->second;
  allocations.erase(found);
  last_end = 0;
  written_by_host(memory, bytes);  // the next owner's
}

bool is_global(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(global_memory()) < kAllBytes;
}

std::string outside_global(const void* pointer, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  if (at >= last_begin && at + bytes <= last_end) return {};
  auto found = allocations.upper_bound(at);
  if (!is_global(pointer)) return "at an address that is not of the device's memory";
  if (found == allocations.begin()) return "in front of every allocation";
  --found;
  const std::uintptr_t stop = found->first + found->second;
  if (at + bytes <= stop) {
    last_begin = found->first;
    last_end = stop;
    return {};
  }
  return std::to_string(at + bytes - stop) + " bytes behind the end of an allocation of " +
         std::to_string(found->second) + " bytes";
}

unsigned char* shared_windows() {
  static unsigned char* const windows = [] {
    const auto memory = reinterpret_cast<std::uintptr_t>(map_addresses((kMostBlocks + 1) * kWindowBytes));
    return reinterpret_cast<unsigned char*>((memory + kWindowBytes - 1) / kWindowBytes * kWindowBytes);
  }();
  return windows;
}

}  // namespace tmaops::executor
