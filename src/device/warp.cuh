// One thread of a warp, warp roles, and sums within a warp.
#pragma once

#include <cstdint>

#include "device/architecture.cuh"

namespace tmaops::device {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpgroupThreads = 128;

/// True in exactly one thread of a converged warp, chosen by the hardware (PTX ISA elect.sync). Better than
/// `lane == 0`: the compiler knows that only one thread runs what follows and issues TMA without a loop. Compute
/// capability 9.0 and later only.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(elected)::"memory");
  return elected != 0;
}

/// The warp's number in a one-dimensional block. The compiler knows that it is the same in all threads of the warp. All
/// threads of the warp must call it together: inside a branch of one lane it never returns.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarpThreads, 0);
}

/// Lane of the thread in its warp (PTX ISA "%laneid").
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarpThreads; }

/// Sum over the warp, in every thread (PTX ISA redux.sync). Unsigned sums wrap.
__device__ __forceinline__ std::uint32_t warp_sum(std::uint32_t value) { return __reduce_add_sync(0xffffffffu, value); }

/// Sum over groups of `width` neighbouring threads, in every thread of the group (PTX ISA shfl.sync).
template <int width = kWarpThreads, class T>
__device__ __forceinline__ T group_sum(T value) {
  static_assert(width > 0 && width <= kWarpThreads && (width & (width - 1)) == 0, "width is a power of two up to 32");
#pragma unroll
  for (int offset = width / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Gives registers of the whole warpgroup back, or takes more (PTX ISA setmaxnreg). The kernel needs
/// __launch_bounds__(threads, 1), and each role is one branch of one if/else. Compute capability 9.0a and later only.
template <int registers>
__device__ __forceinline__ void decrease_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "setmaxnreg takes 24 to 256 in steps of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void increase_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "setmaxnreg takes 24 to 256 in steps of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/// Programmatic dependent launch: all memory written by the kernel before this one is visible after the call (PTX ISA
/// griddepcontrol.wait). Does nothing in a plain launch, and before compute capability 9.0, where every launch is
/// plain. Call it before the first global access.
__device__ __forceinline__ void wait_for_previous_kernel() {
  if constexpr (kSinceHopper) asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the next kernel start once every block of this one has called it or ended (griddepcontrol.launch_dependents).
/// It may be the first line of a kernel, because the next kernel waits for the memory of this one. Does nothing before
/// compute capability 9.0.
__device__ __forceinline__ void let_next_kernel_start() {
  if constexpr (kSinceHopper) asm volatile("griddepcontrol.launch_dependents;" :::);
}

}  // namespace tmaops::device
