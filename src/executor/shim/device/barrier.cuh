// Host twin of src/device/barrier.cuh.
#pragma once

#include "device/shared_memory.cuh"
#include "device/watchdog.cuh"

namespace tmaops::device {

struct alignas(8) Barrier {
  std::uint64_t state;
};

__device__ __forceinline__ void init_barrier(Barrier& barrier, std::uint32_t arrivals) {
  executor::init_barrier(&barrier, arrivals);
}

__device__ __forceinline__ void fence_barrier_init() { executor::fence_barrier_init(); }

__device__ __forceinline__ void arrive(Barrier& barrier) { executor::arrive(&barrier, 0); }

__device__ __forceinline__ void arrive_expect_bytes(Barrier& barrier, std::uint32_t bytes) {
  executor::arrive(&barrier, bytes);
}

__device__ __forceinline__ void arrive_at(Barrier& barrier, std::uint32_t rank) { executor::arrive_at(&barrier, rank); }

__device__ __forceinline__ bool test_wait(Barrier& barrier, std::uint32_t parity) {
  return executor::test_barrier(&barrier, parity);
}

__device__ __forceinline__ bool try_wait(Barrier& barrier, std::uint32_t parity) {
  return executor::test_barrier(&barrier, parity);
}

__device__ __forceinline__ void wait(Barrier& barrier, std::uint32_t parity, const WaitSite& site = {}) {
  executor::wait_barrier(&barrier, parity, site.barrier, site.stage);
}

template <int id>
__device__ __forceinline__ void sync_threads(int threads) {
  static_assert(id >= 0 && id < 16, "a block has the named barriers 0 to 15");
  executor::block_barrier(id, threads, true);
}

template <int id>
__device__ __forceinline__ void arrive_threads(int threads) {
  static_assert(id >= 0 && id < 16, "a block has the named barriers 0 to 15");
  executor::block_barrier(id, threads, false);
}

}  // namespace tmaops::device
