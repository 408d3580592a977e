// Values of two samples combined into one: element by element, and 16 bytes at a time. Arithmetic in f32, one rounding.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/vector.cuh"

namespace tmaops::ops::resample::gpu {

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

/// The two 16-bit values in 4 bytes as f32, and back. (A bf16 is the upper half of an f32.)
__device__ __forceinline__ float2 unpack_word(std::uint32_t word, const __nv_bfloat16*) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}
__device__ __forceinline__ float2 unpack_word(std::uint32_t word, const __half*) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}
__device__ __forceinline__ std::uint32_t pack_word(float low, float high, const __nv_bfloat16*) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ __forceinline__ std::uint32_t pack_word(float low, float high, const __half*) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
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
  } else {
    const float2 from = unpack_word(a, static_cast<const Value*>(nullptr));
    const float2 to = unpack_word(b, static_cast<const Value*>(nullptr));
    return pack_word(fmaf(w, to.x - from.x, from.x), fmaf(w, to.y - from.y, from.y),
                     static_cast<const Value*>(nullptr));
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

/// The values in 16 bytes as f32.
template <class Value>
struct Unpacked {
  static constexpr int count = 16 / static_cast<int>(sizeof(Value));
  float at[count];
};

template <class Value>
__device__ __forceinline__ Unpacked<Value> unpack(const uint4& words) {
  const std::uint32_t word[4] = {words.x, words.y, words.z, words.w};
  Unpacked<Value> values;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (std::is_same_v<Value, float>) {
      values.at[k] = __uint_as_float(word[k]);
    } else {
      const float2 pair = unpack_word(word[k], static_cast<const Value*>(nullptr));
      values.at[2 * k] = pair.x;
      values.at[2 * k + 1] = pair.y;
    }
  }
  return values;
}

template <class Value>
__device__ __forceinline__ uint4 pack(const Unpacked<Value>& values) {
  std::uint32_t word[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (std::is_same_v<Value, float>)
      word[k] = __float_as_uint(values.at[k]);
    else
      word[k] = pack_word(values.at[2 * k], values.at[2 * k + 1], static_cast<const Value*>(nullptr));
  }
  return {word[0], word[1], word[2], word[3]};
}

}  // namespace tmaops::ops::resample::gpu
