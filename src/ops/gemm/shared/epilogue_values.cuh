// What every epilogue does with single values: reads and writes them in any type, activates and rounds them.
#pragma once

#include "device/convert.cuh"
#include "ops/gemm/shared/call.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kStagedRows = 16;  // a warp's part of a wgmma tile

__device__ __forceinline__ float load_float(const void* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f16) return device::widen(static_cast<const __half*>(data)[at]);
  if (dtype == DType::bf16) return device::widen(static_cast<const __nv_bfloat16*>(data)[at]);
  return static_cast<const float*>(data)[at];
}

__device__ __forceinline__ float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0.0F ? 0.0F : x;  // NaN stays NaN
    case Activation::gelu:
      return 0.5F * x * erfcf(x * -0.707106781F);
    case Activation::silu:
      return x / (1.0F + expf(-x));
  }
  return x;
}

__device__ __forceinline__ std::uint32_t pack(float low, float high, DType dtype) {
  if (dtype == DType::f16) return device::pack<__half>(low, high);
  return device::pack<__nv_bfloat16>(low, high);
}

__device__ __forceinline__ void store_float(void* data, DType dtype, std::int64_t at, float value) {
  if (dtype == DType::f16)
    static_cast<__half*>(data)[at] = device::narrow<__half>(value);
  else if (dtype == DType::bf16)
    static_cast<__nv_bfloat16*>(data)[at] = device::narrow<__nv_bfloat16>(value);
  else
    static_cast<float*>(data)[at] = value;
}

/// Two sums, next to each other in a row of the tile, to D.
__device__ __forceinline__ void finish_pair(const Epilogue& epilogue, float first, float second, int row, int column,
                                            std::int64_t batch) {
  if (row >= epilogue.rows) return;
  float value[2] = {first, second};
  const int columns = min(2, epilogue.columns - column);
  if (!epilogue.plain) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i >= columns) continue;
      value[i] *= epilogue.alpha;
      if (epilogue.c != nullptr)
        value[i] += epilogue.beta * load_float(epilogue.c, epilogue.c_dtype,
                                               batch * epilogue.c_batch_stride + row * epilogue.c_row_stride +
                                                   (column + i) * epilogue.c_column_stride);
      if (epilogue.bias != nullptr)
        value[i] += load_float(epilogue.bias, epilogue.bias_dtype,
                               row * epilogue.bias_row_stride + (column + i) * epilogue.bias_column_stride);
      value[i] = activate(epilogue.activation, value[i]);
    }
  }
  const std::int64_t at =
      batch * epilogue.d_batch_stride + row * epilogue.d_row_stride + column * epilogue.d_column_stride;
  if (epilogue.vectors && columns == 2 && epilogue.d_dtype != DType::f32) {
    *reinterpret_cast<std::uint32_t*>(static_cast<__half*>(epilogue.d) + at) =
        pack(value[0], value[1], epilogue.d_dtype);
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (i < columns) store_float(epilogue.d, epilogue.d_dtype, at + i * epilogue.d_column_stride, value[i]);
}

}  // namespace tmaops::ops::gemm
