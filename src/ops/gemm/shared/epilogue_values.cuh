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

}  // namespace tmaops::ops::gemm
