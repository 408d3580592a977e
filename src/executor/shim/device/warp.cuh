// Host twin of src/device/warp.cuh.
#pragma once

#include <cstdint>

#include "device/architecture.cuh"

namespace tmaops::device {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpgroupThreads = 128;

__device__ __forceinline__ bool elect_one() {
  return executor::warp_collective(executor::Collect::elect, 0xffffffffu, 0, 0, 32) != 0;
}

__device__ __forceinline__ int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarpThreads, 0);
}

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarpThreads; }

__device__ __forceinline__ std::uint32_t warp_sum(std::uint32_t value) { return __reduce_add_sync(0xffffffffu, value); }

template <int width = kWarpThreads, class T>
__device__ __forceinline__ T group_sum(T value) {
  static_assert(width > 0 && width <= kWarpThreads && (width & (width - 1)) == 0, "width is a power of two up to 32");
  for (int offset = width / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <int registers>
__device__ __forceinline__ void decrease_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "setmaxnreg takes 24 to 256 in steps of 8");
  executor::decrease_registers(registers);
}
template <int registers>
__device__ __forceinline__ void increase_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "setmaxnreg takes 24 to 256 in steps of 8");
  executor::increase_registers(registers);
}

__device__ __forceinline__ void wait_for_previous_kernel() { executor::wait_for_previous_kernel(); }

__device__ __forceinline__ void let_next_kernel_start() { executor::let_next_kernel_start(); }

}  // namespace tmaops::device
