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

}  // namespace tmaops::device
