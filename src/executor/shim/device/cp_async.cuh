// Host twin of src/device/cp_async.cuh.
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"

namespace tmaops::device {

__device__ __forceinline__ void copy_async_16(void* to, const void* from, std::uint32_t bytes = 16) {
  executor::copy_async(to, from, 16, bytes);
}

template <int size>
__device__ __forceinline__ void copy_async_small(void* to, const void* from, std::uint32_t bytes = size) {
  static_assert(size == 4 || size == 8, "cp.async copies 4, 8 or 16 bytes; 16 has its own function");
  executor::copy_async(to, from, size, bytes);
}

__device__ __forceinline__ void commit_copies() { executor::commit_copies(); }

template <int groups = 0>
__device__ __forceinline__ void wait_copies() {
  static_assert(groups >= 0 && groups < 16);
  executor::wait_copies(groups);
}

}  // namespace tmaops::device
