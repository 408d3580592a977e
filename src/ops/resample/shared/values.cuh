// Values of two samples combined into one: one by one, and 16 bytes at a time. Arithmetic in f32 or f64, one rounding.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cuda_types.hpp"
#include "device/convert.cuh"
#include "device/vector.cuh"

namespace tmaops::ops::resample::gpu {

using device::narrow;
using device::widen;

/// a + w (b - a); a itself, to the bit, when w is 0, whatever b is.
template <class Value>
__device__ __forceinline__ Value mix(Value a, Value b, Arithmetic<Value> w) {
  if (w == 0) return a;
  const Arithmetic<Value> from = widen(a);
  return narrow<Value>(fma(w, widen(b) - from, from));
}

/// The same for the values in 4 bytes.
template <class Value>
__device__ __forceinline__ std::uint32_t mix_word(std::uint32_t a, std::uint32_t b, float w) {
  if constexpr (std::is_same_v<Value, float>) {
    const float from = __uint_as_float(a);
    return __float_as_uint(fmaf(w, __uint_as_float(b) - from, from));
  } else {
    const float2 from = device::unpack<Value>(a);
    const float2 to = device::unpack<Value>(b);
    return device::pack<Value>(fmaf(w, to.x - from.x, from.x), fmaf(w, to.y - from.y, from.y));
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
  static constexpr int count = device::kPerVector<Value>;
  float at[count];
};

template <class Value>
__device__ __forceinline__ Unpacked<Value> unpack(const uint4& words) {
  Unpacked<Value> values;
  device::unpack_16<Value>(words, values.at);
  return values;
}
template <class Value>
__device__ __forceinline__ uint4 pack(const Unpacked<Value>& values) {
  return device::pack_16<Value>(values.at);
}

}  // namespace tmaops::ops::resample::gpu
