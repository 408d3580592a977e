// Elements and 16-byte pieces of any type, to and from f32.
#pragma once

#include <type_traits>

#include "device/vector.cuh"
#include "ops/ms_deform_attn/cuda/call.cuh"

namespace tmaops::ops::ms_deform_attn::cuda {

__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class Value>
__device__ __forceinline__ Value narrow(float value) {
  if constexpr (std::is_same_v<Value, float>)
    return value;
  else if constexpr (std::is_same_v<Value, __half>)
    return __float2half_rn(value);
  else
    return __float2bfloat16_rn(value);
}

/// Element `at` of locations or weights, as f32.
template <class Point>
__device__ __forceinline__ float read_point(const PointRows& rows, std::int64_t at) {
  if constexpr (!std::is_same_v<Point, AnyType>) {
    return widen(__ldg(static_cast<const Point*>(rows.data) + at));
  } else {
    if (rows.dtype == DType::f16) return widen(__ldg(static_cast<const __half*>(rows.data) + at));
    if (rows.dtype == DType::bf16) return widen(__ldg(static_cast<const __nv_bfloat16*>(rows.data) + at));
    if (rows.dtype == DType::f32) return __ldg(static_cast<const float*>(rows.data) + at);
    return static_cast<float>(__ldg(static_cast<const double*>(rows.data) + at));
  }
}

/// Values in 16 bytes.
template <class Value>
inline constexpr int kPerVector = 16 / static_cast<int>(sizeof(Value));

/// sum[i] += weight * element i of 16 bytes.
template <class Value>
__device__ __forceinline__ void add_vector(float (&sum)[kPerVector<Value>], const uint4& vector, float weight) {
  const std::uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, float>) {
      sum[i] = fmaf(weight, __uint_as_float(words[i]), sum[i]);
    } else if constexpr (std::is_same_v<Value, __nv_bfloat16>) {  // a bf16 is the upper half of an f32
      sum[2 * i] = fmaf(weight, __uint_as_float(words[i] << 16), sum[2 * i]);
      sum[2 * i + 1] = fmaf(weight, __uint_as_float(words[i] & 0xffff0000u), sum[2 * i + 1]);
    } else {
      const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
      sum[2 * i] = fmaf(weight, pair.x, sum[2 * i]);
      sum[2 * i + 1] = fmaf(weight, pair.y, sum[2 * i + 1]);
    }
  }
}

/// The f32 sums, rounded once, as 16 bytes.
template <class Value>
__device__ __forceinline__ uint4 pack_vector(const float (&sum)[kPerVector<Value>]) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, float>) {
      words[i] = __float_as_uint(sum[i]);
    } else if constexpr (std::is_same_v<Value, __nv_bfloat16>) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
      words[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
    } else {
      const __half2 pair = __floats2half2_rn(sum[2 * i], sum[2 * i + 1]);
      words[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace tmaops::ops::ms_deform_attn::cuda
