// What the L2 should do with the bytes of a copy (PTX ISA "Cache Eviction Priority Hints").
#pragma once

#include <cstdint>

namespace tmaops::device {

/// The encoded policies of createpolicy.fractional.L2::<priority> with fraction 1.0, as CUTLASS publishes them
/// (cute/arch/copy_sm90_desc.hpp).
enum class CacheHint : std::uint64_t {
  evict_normal = 0x1000000000000000ull,
  evict_first = 0x12F0000000000000ull,  // read once
  evict_last = 0x14F0000000000000ull,   // read again by other blocks
};

/// evict_first for `part` of the lines, 0 < part <= 1, and no hint for the others (PTX ISA "createpolicy.fractional").
/// The address decides which lines get the hint, so they are the same in every launch. Where all launches read the same
/// bytes and these exceed the L2, the lines without the hint stay in it.
__device__ __forceinline__ CacheHint evict_first_of(float part) {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, %1;" : "=l"(policy) : "f"(part));
  return static_cast<CacheHint>(policy);
}

}  // namespace tmaops::device
