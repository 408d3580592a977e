// Host twin of src/device/cache_hint.cuh.
#pragma once

#include <cstdint>

namespace tmaops::device {

enum class CacheHint : std::uint64_t {
  evict_normal = 0x1000000000000000ull,
  evict_first = 0x12F0000000000000ull,
  evict_last = 0x14F0000000000000ull,
};

__device__ __forceinline__ CacheHint evict_first_of(float) { return CacheHint::evict_first; }

}  // namespace tmaops::device
