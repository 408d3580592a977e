// Host twin of src/device/mma.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tmaops::device {

template <class T>
__device__ __forceinline__ void multiply_add(float* d, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  executor::multiply_add(d, a, b, !std::is_same_v<T, __half>);
}

}  // namespace tmaops::device
