// Values of two samples combined into one: element by element, and 16 bytes at a time. Arithmetic in f32, one rounding.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/vector.cuh"

namespace tmaops::ops::resample::cuda {

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

/// a + w (b - a); a itself, to the bit, when w is 0, whatever b is.
template <class Value>
__device__ __forceinline__ Value mix(Value a, Value b, float w) {
  if (w == 0.0f) return a;
  const float from = widen(a);
  return narrow<Value>(fmaf(w, widen(b) - from, from));
}

/// The same for the values in 4 bytes.
template <class Value>
__device__ __forceinline__ std::uint32_t mix_word(std::uint32_t a, std::uint32_t b, float w) {
  if constexpr (std::is_same_v<Value, float>) {
    const float from = __uint_as_float(a);
    return __float_as_uint(fmaf(w, __uint_as_float(b) - from, from));
  } else if constexpr (std::is_same_v<Value, __nv_bfloat16>) {
    const float low = __uint_as_float(a << 16);  // a bf16 is the upper half of an f32
    const float high = __uint_as_float(a & 0xffff0000u);
    const __nv_bfloat162 pair = __floats2bfloat162_rn(fmaf(w, __uint_as_float(b << 16) - low, low),
                                                      fmaf(w, __uint_as_float(b & 0xffff0000u) - high, high));
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const float2 from = __half22float2(*reinterpret_cast<const __half2*>(&a));
    const float2 to = __half22float2(*reinterpret_cast<const __half2*>(&b));
    const __half2 pair = __floats2half2_rn(fmaf(w, to.x - from.x, from.x), fmaf(w, to.y - from.y, from.y));
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

/// The same for the values in 16 bytes. Without a branch: as one, it split the loads of b into four that waited for it.
template <class Value>
__device__ __forceinline__ uint4 mix_16(const uint4& a, const uint4& b, float w) {
  const bool copy = w == 0.0f;
  return {
      device::select(copy, a.x, mix_word<Value>(a.x, b.x, w)), device::select(copy, a.y, mix_word<Value>(a.y, b.y, w)),
      device::select(copy, a.z, mix_word<Value>(a.z, b.z, w)), device::select(copy, a.w, mix_word<Value>(a.w, b.w, w))};
}

}  // namespace tmaops::ops::resample::cuda
