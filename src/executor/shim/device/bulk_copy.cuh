// Host twin of src/device/bulk_copy.cuh.
#pragma once

#include "device/architecture.cuh"
#include "device/barrier.cuh"
#include "device/cache_hint.cuh"

namespace tmaops::device {

__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes, Barrier& barrier) {
  executor::bulk_load(to, from, bytes, &barrier);
}

__device__ __forceinline__ void bulk_store(void* to, const void* from, std::uint32_t bytes) {
  executor::bulk_store(to, from, bytes);
}

__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes) {
  executor::bulk_prefetch(from, bytes);
}

__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes, CacheHint) {
  executor::bulk_prefetch(from, bytes);
}

__device__ __forceinline__ void commit_stores() { executor::commit_stores(); }

template <int groups = 0>
__device__ __forceinline__ void wait_stores_read() {
  static_assert(groups >= 0 && groups < 8);
  executor::wait_stores_read(groups);
}

}  // namespace tmaops::device
