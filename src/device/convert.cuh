// Values of f16, bf16 and f32 to f32 and back (f64 stays f64): one at a time, the two in a word, and those in 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tmaops::device {

__device__ __forceinline__ double widen(double value) { return value; }
__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

/// The nearest value of the type, ties to even.
template <class Value>
__device__ __forceinline__ Value narrow(float value) {
  if constexpr (std::is_same_v<Value, float>)
    return value;
  else if constexpr (std::is_same_v<Value, __half>)
    return __float2half_rn(value);
  else
    return __float2bfloat16_rn(value);
}

template <class Value>
__device__ __forceinline__ Value narrow(double value) {
  if constexpr (std::is_same_v<Value, double>)
    return value;
  else
    return narrow<Value>(static_cast<float>(value));
}

/// The two 16-bit values in a word, the lower half first.
template <class Value>
__device__ __forceinline__ float2 unpack(std::uint32_t word) {
  static_assert(sizeof(Value) == 2);
  if constexpr (std::is_same_v<Value, __half>)
    return __half22float2(*reinterpret_cast<const __half2*>(&word));
  else  // a bf16 is the upper half of an f32
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

/// Two values as 16 bits each in a word, rounded to nearest.
template <class Value>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  static_assert(sizeof(Value) == 2);
  if constexpr (std::is_same_v<Value, __half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

/// Values in 16 bytes.
template <class Value>
inline constexpr int kPerVector = 16 / static_cast<int>(sizeof(Value));

/// sum[i] += weight * value i of 16 bytes.
template <class Value>
__device__ __forceinline__ void add_scaled_16(float (&sum)[kPerVector<Value>], const uint4& vector, float weight) {
  const std::uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, float>) {
      sum[i] = fmaf(weight, __uint_as_float(words[i]), sum[i]);
    } else if constexpr (std::is_same_v<Value, __nv_bfloat16>) {  // through a pair, some kernels spill
      sum[2 * i] = fmaf(weight, __uint_as_float(words[i] << 16), sum[2 * i]);
      sum[2 * i + 1] = fmaf(weight, __uint_as_float(words[i] & 0xffff0000u), sum[2 * i + 1]);
    } else {
      const float2 pair = unpack<Value>(words[i]);
      sum[2 * i] = fmaf(weight, pair.x, sum[2 * i]);
      sum[2 * i + 1] = fmaf(weight, pair.y, sum[2 * i + 1]);
    }
  }
}

/// The values in 16 bytes.
template <class Value>
__device__ __forceinline__ void unpack_16(const uint4& vector, float (&to)[kPerVector<Value>]) {
  const std::uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, float>) {
      to[i] = __uint_as_float(words[i]);
    } else {
      const float2 pair = unpack<Value>(words[i]);
      to[2 * i] = pair.x;
      to[2 * i + 1] = pair.y;
    }
  }
}

/// The values as 16 bytes, each rounded to nearest.
template <class Value>
__device__ __forceinline__ uint4 pack_16(const float (&values)[kPerVector<Value>]) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, float>)
      words[i] = __float_as_uint(values[i]);
    else
      words[i] = pack<Value>(values[2 * i], values[2 * i + 1]);
  }
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace tmaops::device
