// Host twin of src/device/wgmma.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/wgmma_descriptor.cuh"

namespace tmaops::device {

__device__ __forceinline__ void wgmma_fence() { executor::wgmma_fence(); }

__device__ __forceinline__ void wgmma_commit() { executor::wgmma_commit(); }

template <int groups = 0>
__device__ __forceinline__ void wgmma_wait() {
  static_assert(groups >= 0 && groups < 8, "wgmma can wait for all but 0 to 7 groups");
  executor::wgmma_wait(groups);
}

template <int count>
__device__ __forceinline__ void pin_registers(float (&)[count]) {
  __asm__ volatile("" ::: "memory");
}

template <class T, int n>
struct Wgmma {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "wgmma here takes f16 or bf16");
  static_assert(n >= 8 && n <= 256 && n % 8 == 0, "wgmma's N is a multiple of 8 from 8 to 256");
  static constexpr bool half = std::is_same_v<T, __half>;
  using Accumulators = float[n / 2];

  template <Major a_major = Major::k, Major b_major = Major::k>
  static __device__ __forceinline__ void multiply(Accumulators& d, OperandDescriptor a, OperandDescriptor b,
                                                  bool accumulate) {
    executor::wgmma(d, n, !half, a.bits, b.bits, a_major == Major::mn, b_major == Major::mn, accumulate);
  }
};

}  // namespace tmaops::device
