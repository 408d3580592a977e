// Copies of contiguous bytes by the copy engine (PTX ISA "cp.async.bulk"). Addresses and sizes are multiples of
// 16 bytes. One thread issues a copy. Loads complete on a barrier that expects their bytes, stores and reductions
// complete in a group.
#pragma once

#include <cuda/ptx>

#include "device/barrier.cuh"
#include "device/cache_hint.cuh"

namespace tmaops::device {

/// global -> shared of this block.
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes, Barrier& barrier) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, to, from, bytes, &barrier.state);
}
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes, Barrier& barrier,
                                          CacheHint hint) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier)),
      "l"(static_cast<std::uint64_t>(hint))
      : "memory");
}

/// global -> the same place in every block of `blocks` (bit r is cluster rank r). The bytes of a block complete on its
/// own barrier, which lies at the same place. Compute capability 9.0a and 10.0a only.
__device__ __forceinline__ void bulk_load_multicast(void* to, const void* from, std::uint32_t bytes, Barrier& barrier,
                                                    std::uint16_t blocks) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, to, from, bytes, &barrier.state, blocks);
}

/// shared of this block -> shared of block `rank`. The bytes complete on the barrier there.
__device__ __forceinline__ void bulk_copy_to_block(void* to, const void* from, std::uint32_t bytes, Barrier& barrier,
                                                   std::uint32_t rank) {
  asm volatile(
      "{\n .reg .b32 remote, signal;\n mapa.shared::cluster.u32 remote, %0, %4;\n"
      " mapa.shared::cluster.u32 signal, %3, %4;\n"
      " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [remote], [%1], %2, [signal];\n}" ::"r"(
          shared_address(to)),
      "r"(shared_address(from)), "r"(bytes), "r"(shared_address(&barrier)), "r"(rank)
      : "memory");
}

/// shared -> global. Call fence_async_shared() before it and commit_stores() after it.
__device__ __forceinline__ void bulk_store(void* to, const void* from, std::uint32_t bytes) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, to, from, bytes);
}

/// shared added to global, element by element, in one pass (PTX ISA cp.reduce.async.bulk). T: float, int32, uint32,
/// uint64. Sums arrive in any order.
template <class T>
__device__ __forceinline__ void bulk_add(T* to, const T* from, std::uint32_t bytes) {
  cuda::ptx::cp_reduce_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, cuda::ptx::op_add, to, from, bytes);
}

/// The same into the shared memory of block `rank`. The bytes complete on the barrier there.
__device__ __forceinline__ void bulk_add_to_block(std::uint32_t* to, const std::uint32_t* from, std::uint32_t bytes,
                                                  Barrier& barrier, std::uint32_t rank) {
  asm volatile(
      "{\n .reg .b32 remote, signal;\n mapa.shared::cluster.u32 remote, %0, %4;\n"
      " mapa.shared::cluster.u32 signal, %3, %4;\n"
      " cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [remote], [%1], %2, "
      "[signal];\n}" ::"r"(shared_address(to)),
      "r"(shared_address(from)), "r"(bytes), "r"(shared_address(&barrier)), "r"(rank)
      : "memory");
}

/// global -> L2 (PTX ISA cp.async.bulk.prefetch.L2).
__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}

/// The same with a hint how long the L2 should keep the bytes.
__device__ __forceinline__ void bulk_prefetch(const void* from, std::uint32_t bytes, CacheHint hint) {
  asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes), "l"(static_cast<std::uint64_t>(hint))
               : "memory");
}

/// Closes a group of the bulk and tensor stores and reductions that this thread has issued (PTX ISA
/// cp.async.bulk.commit_group).
__device__ __forceinline__ void commit_stores() { cuda::ptx::cp_async_bulk_commit_group(); }

/// Waits until all but the newest `groups` groups are complete in memory (PTX ISA cp.async.bulk.wait_group).
template <int groups = 0>
__device__ __forceinline__ void wait_stores() {
  static_assert(groups >= 0 && groups < 8);
  cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<groups>{});
}

/// Waits until all but the newest `groups` groups have read their shared memory, which may then be written again
/// (cp.async.bulk.wait_group.read). A block that stores must call this or wait_stores() before it ends.
template <int groups = 0>
__device__ __forceinline__ void wait_stores_read() {
  static_assert(groups >= 0 && groups < 8);
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<groups>{});
}

}  // namespace tmaops::device
