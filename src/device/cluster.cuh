// Clusters of blocks, and reading and writing each other's shared memory (PTX ISA "barrier.cluster").
#pragma once

#include <cuda/ptx>

#include "device/barrier.cuh"

namespace tmaops::device {

/// This block's number in its cluster (PTX ISA "%cluster_ctarank").
__device__ __forceinline__ std::uint32_t cluster_rank() { return cuda::ptx::get_sreg_cluster_ctarank(); }

/// Blocks in the cluster (PTX ISA "%cluster_nctarank").
__device__ __forceinline__ std::uint32_t cluster_size() { return cuda::ptx::get_sreg_cluster_nctarank(); }

/// This cluster's number along x of the grid (PTX ISA "%clusterid").
__device__ __forceinline__ std::uint32_t cluster_index() { return cuda::ptx::get_sreg_clusterid_x(); }

/// Arrives at the cluster's barrier, ordering memory before it (barrier.cluster.arrive.release).
__device__ __forceinline__ void cluster_arrive() { cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release); }

/// Arrives without ordering memory: enough after fence_barrier_init() (barrier.cluster.arrive.relaxed).
__device__ __forceinline__ void cluster_arrive_relaxed() { cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed); }

/// Waits until all threads of the cluster arrived (barrier.cluster.wait.acquire).
__device__ __forceinline__ void cluster_wait() { cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire); }

/// A barrier of all threads of the cluster that orders memory. No block may end while another reads its shared memory.
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// Writes 16 bytes into block `rank` and completes 16 bytes on the barrier there (PTX ISA st.async). `to` and
/// `barrier` are variables of this block that stand for the same places in the other block.
__device__ __forceinline__ void store_async(void* to, const uint4& value, Barrier& barrier, std::uint32_t rank) {
  asm volatile(
      "{\n .reg .b32 remote, signal;\n mapa.shared::cluster.u32 remote, %0, %2;\n"
      " mapa.shared::cluster.u32 signal, %1, %2;\n"
      " st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [remote], {%3, %4, %5, %6}, [signal];\n}" ::
          "r"(shared_address(to)),
      "r"(shared_address(&barrier)), "r"(rank), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
      : "memory");
}

}  // namespace tmaops::device
