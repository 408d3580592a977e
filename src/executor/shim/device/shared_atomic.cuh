// Host twin of src/device/shared_atomic.cuh.
#pragma once

#include "device/shared_memory.cuh"

namespace tmaops::device {

__device__ __forceinline__ std::uint32_t add_where(bool condition, std::uint32_t& number, std::uint32_t summand) {
  return condition ? atomicAdd(&number, summand) : 0;
}

}  // namespace tmaops::device
