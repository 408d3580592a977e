// Host twin of src/device/cluster.cuh.
#pragma once

#include "device/barrier.cuh"

namespace tmaops::device {

__device__ __forceinline__ std::uint32_t cluster_rank() { return executor::cluster_rank(); }

__device__ __forceinline__ std::uint32_t cluster_size() { return executor::cluster_size(); }

__device__ __forceinline__ std::uint32_t cluster_index() { return blockIdx.x / executor::cluster_size(); }

__device__ __forceinline__ void cluster_arrive() { executor::cluster_arrive(true); }

__device__ __forceinline__ void cluster_arrive_relaxed() { executor::cluster_arrive(false); }

__device__ __forceinline__ void cluster_wait() { executor::cluster_wait(); }

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

__device__ __forceinline__ void store_async(void* to, const uint4& value, Barrier& barrier, std::uint32_t rank) {
  executor::store_async(to, &value, &barrier, rank);
}

}  // namespace tmaops::device
