// Copies of contiguous bytes by the copy engine (PTX ISA "cp.async.bulk"). Addresses and sizes are multiples of
// 16 bytes. One thread issues a copy. Loads complete on a barrier that expects their bytes, stores complete in a group.
#pragma once

#include <cuda/ptx>

#include "device/architecture.cuh"
#include "device/barrier.cuh"
#include "device/cache_hint.cuh"

namespace tmaops::device {

/// global -> shared of this block.
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes, Barrier& barrier) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, to, from, bytes, &barrier.state);
}

/// shared -> global. Call fence_async_shared() before it and commit_stores() after it.
__device__ __forceinline__ void bulk_store(void* to, const void* from, std::uint32_t bytes) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, to, from, bytes);
}

/// global -> L2 (PTX ISA cp.async.bulk.prefetch.L2). Does nothing before compute capability 9.0.
__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes) {
  if constexpr (kSinceHopper)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}

/// The same with a hint how long the L2 should keep the bytes.
__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes, CacheHint hint) {
  if constexpr (kSinceHopper)
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(__cvta_generic_to_global(from)),
                 "r"(bytes), "l"(static_cast<std::uint64_t>(hint))
                 : "memory");
}

/// Closes a group of the bulk and tensor stores that this thread has issued (PTX ISA
/// cp.async.bulk.commit_group).
__device__ __forceinline__ void commit_stores() { cuda::ptx::cp_async_bulk_commit_group(); }

/// Waits until all but the newest `groups` groups have read their shared memory, which may then be written again
/// (cp.async.bulk.wait_group.read). A block that stores must call this before it ends.
template <int groups = 0>
__device__ __forceinline__ void wait_stores_read() {
  static_assert(groups >= 0 && groups < 8);
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<groups>{});
}

}  // namespace tmaops::device
