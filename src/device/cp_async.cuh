// cp.async: 16 bytes per thread from global to shared memory without passing through registers (PTX ISA "cp.async").
// It needs no descriptor and no barrier, so a kernel that moves little data starts sooner with it than with TMA.
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"

namespace tmaops::device {

/// Copies 16 bytes through the L2 only (.cg). Both addresses are multiples of 16. With `bytes` < 16 the rest is not
/// read and becomes zero, so 0 gives a masked copy.
__device__ __forceinline__ void copy_async_16(void* to, const void* from, std::uint32_t bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}

/// The same with 4 or 8 bytes, through L1 (.ca).
template <int size>
__device__ __forceinline__ void copy_async_small(void* to, const void* from, std::uint32_t bytes = size) {
  static_assert(size == 4 || size == 8, "cp.async copies 4, 8 or 16 bytes; 16 has its own function");
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "n"(size), "r"(bytes)
               : "memory");
}

/// Closes a group of this thread's copies (PTX ISA "cp.async.commit_group").
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until all but the newest `groups` groups of this thread have arrived (PTX ISA "cp.async.wait_group"). Copies
/// of other threads need a barrier after it. Where wgmma or a TMA store reads them, fence_async_shared() comes before
/// that barrier.
template <int groups = 0>
__device__ __forceinline__ void wait_copies() {
  static_assert(groups >= 0 && groups < 16);
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

}  // namespace tmaops::device
