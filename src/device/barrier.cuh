// mbarrier: the barrier in shared memory that threads arrive at and asynchronous copies complete on
// (PTX ISA "mbarrier").
//
// A phase of a barrier ends when all arrivals were made and all expected bytes have come. The parity of the phases is
// 0, 1, 0, 1 and so on. A wait for parity p returns once the phase of that parity has ended. On a fresh barrier a wait
// for 0 waits for the first phase, and a wait for 1 returns at once.
#pragma once

#include <cuda/ptx>

#include "device/shared_memory.cuh"
#include "device/watchdog.cuh"

namespace tmaops::device {

struct alignas(8) Barrier {
  std::uint64_t state;
};

/// Makes a barrier of `arrivals` per phase (PTX ISA mbarrier.init). One thread calls it, and then fence_barrier_init().
/// Other threads may use the barrier after a block or cluster barrier.
__device__ __forceinline__ void init_barrier(Barrier& barrier, std::uint32_t arrivals) {
  cuda::ptx::mbarrier_init(&barrier.state, arrivals);
}

/// Makes barrier initialisation visible to the asynchronous proxy and the cluster (PTX ISA fence.mbarrier_init).
__device__ __forceinline__ void fence_barrier_init() {
  cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
}

/// One arrival of this thread (PTX ISA mbarrier.arrive; release at block scope).
__device__ __forceinline__ void arrive(Barrier& barrier) {
  (void)cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                                   &barrier.state);
}

/// One arrival, and `bytes` more to come in this phase (PTX ISA mbarrier.arrive.expect_tx). Call it right before
/// issuing the copy: calling it for all barriers first delays the first copy.
__device__ __forceinline__ void arrive_expect_bytes(Barrier& barrier, std::uint32_t bytes) {
  (void)cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                                             &barrier.state, bytes);
}

/// One arrival at the barrier at the same place in block `rank` of the cluster (PTX ISA mbarrier.arrive). It leaves out
/// `.release.cluster`, which compiles to a fence of the whole GPU and makes multicast kernels much slower.
__device__ __forceinline__ void arrive_at(Barrier& barrier, std::uint32_t rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

/// Whether the phase of this parity has ended; never blocks (PTX ISA mbarrier.test_wait.parity).
__device__ __forceinline__ bool test_wait(Barrier& barrier, std::uint32_t parity) {
  return cuda::ptx::mbarrier_test_wait_parity(&barrier.state, parity);
}

/// The same, but may sleep for a short time that the hardware chooses (PTX ISA mbarrier.try_wait.parity).
__device__ __forceinline__ bool try_wait(Barrier& barrier, std::uint32_t parity) {
  return cuda::ptx::mbarrier_try_wait_parity(&barrier.state, parity);
}

/// Waits until the phase of this parity has ended. It leaves out `.acquire.cluster`, which invalidates the L1.
__device__ __forceinline__ void wait(Barrier& barrier, std::uint32_t parity, const WaitSite& site = {}) {
  const Watchdog watchdog(site, parity);
  while (!try_wait(barrier, parity)) watchdog.check();
}

/// Waits until `threads` threads have come to the named barrier `id`, 1 to 15 (PTX ISA bar.sync). Barrier 0 is
/// __syncthreads.
template <int id>
__device__ __forceinline__ void sync_threads(int threads) {
  static_assert(id >= 0 && id < 16, "a block has the named barriers 0 to 15");
  asm volatile("bar.sync %0, %1;" ::"n"(id), "r"(threads) : "memory");
}

/// Signals the named barrier without waiting for it (PTX ISA bar.arrive).
template <int id>
__device__ __forceinline__ void arrive_threads(int threads) {
  static_assert(id >= 0 && id < 16, "a block has the named barriers 0 to 15");
  asm volatile("bar.arrive %0, %1;" ::"n"(id), "r"(threads) : "memory");
}

}  // namespace tmaops::device
