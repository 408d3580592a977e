// The gradients of one sample.
#pragma once

#include "ops/ms_deform_attn/backward/shared/call.hpp"
#include "ops/ms_deform_attn/shared/locate.cuh"
#include "ops/ms_deform_attn/shared/points.cuh"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

/// Four neighbouring values as f32.
template <class Value>
__device__ __forceinline__ void load_four(const Value* from, float (&to)[kFour]) {
  if constexpr (std::is_same_v<Value, float>) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(from));
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
    const float2 low = device::unpack<Value>(words.x);
    const float2 high = device::unpack<Value>(words.y);
    to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
  }
}

/// Writes four neighbouring values that are not read again soon.
template <class To>
__device__ __forceinline__ void store_four(To* to, const float (&four)[kFour]) {
  if constexpr (std::is_same_v<To, float>)
    __stcs(reinterpret_cast<float4*>(to), float4{four[0], four[1], four[2], four[3]});
  else
    __stcs(reinterpret_cast<uint2*>(to), uint2{device::pack<To>(four[0], four[1]), device::pack<To>(four[2], four[3])});
}

/// An element of grad_output, which is of the value's type or f32.
template <class Value>
__device__ __forceinline__ Arithmetic<Value> read_gradient(const void* data, DType dtype, std::int64_t at) {
  if constexpr (!std::is_same_v<Value, float>)
    if (dtype != DType::f32) return device::widen(__ldg(static_cast<const Value*>(data) + at));
  return __ldg(static_cast<const float*>(data) + at);
}

/// The four corners of a bilinear sample, or the one pixel of a nearest one.
template <class T>
struct FootprintOf {
  int row = 0;
  int column = 0;
  T across = 0;  // from the left to the right column
  T down = 0;
  unsigned inside = 0;  // bit k: corner k (upper left, upper right, lower left, lower right) lies in the level
  __device__ __forceinline__ bool has(int corner) const { return (inside >> corner & 1u) != 0; }
  __device__ __forceinline__ T bilinear(int corner) const {
    return (corner / 2 ? down : 1 - down) * (corner % 2 ? across : 1 - across);
  }
};
using Footprint = FootprintOf<float>;

template <class T>
__device__ __forceinline__ FootprintOf<T> footprint(T x, T y, const DeviceLevel& level, bool nearest) {
  FootprintOf<T> made;
  if (nearest) {
    if (locate_nearest(x, level.width, made.column) && locate_nearest(y, level.height, made.row)) made.inside = 1;
    return made;
  }
  SideOf<T> side;
  SideOf<T> upright;
  if (!locate(x, level.width, side) || !locate(y, level.height, upright)) return made;
  made.column = side.first;
  made.row = upright.first;
  made.across = side.high;
  made.down = upright.high;
  const unsigned columns = (side.first >= 0 ? 1u : 0u) | (side.first + 1 < level.width ? 2u : 0u);
  made.inside = (upright.first >= 0 ? columns : 0u) | (upright.first + 1 < level.height ? columns << 2 : 0u);
  return made;
}

/// Gradients of one point: what its attention weight, x and y are multiplied with, linear in the four c of the
/// definition, so that each thread may add up its own channels first.
template <class T>
struct PointSumsOf {
  T weight = 0;
  T x = 0;
  T y = 0;
};
using PointSums = PointSumsOf<float>;

template <class T>
__device__ __forceinline__ PointSumsOf<T> point_sums(const FootprintOf<T>& at, const T (&c)[4]) {
  PointSumsOf<T> sums;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const T bilinear = at.bilinear(k);
    if (bilinear != T(0)) sums.weight = fma(bilinear, c[k], sums.weight);
  }
  sums.x = fma(1 - at.down, c[1] - c[0], at.down * (c[3] - c[2]));
  sums.y = fma(1 - at.across, c[2] - c[0], at.across * (c[3] - c[1]));
  return sums;
}

template <class T>
__device__ __forceinline__ void write_any(const PointRows& to, std::int64_t at, T value) {
  void* data = const_cast<void*>(to.data);
  if (to.dtype == DType::f32)
    static_cast<float*>(data)[at] = static_cast<float>(value);
  else if (to.dtype == DType::f16)
    static_cast<__half*>(data)[at] = device::narrow<__half>(value);
  else if (to.dtype == DType::bf16)
    static_cast<__nv_bfloat16*>(data)[at] = device::narrow<__nv_bfloat16>(value);
  else
    static_cast<double*>(data)[at] = value;
}

/// `weight` and `sums` of a skipped point are 0: a NaN or an infinity among the weights would else make its gradients
/// NaN, which are 0 by definition.
template <class T>
__device__ __forceinline__ void write_point(const BackwardCall& call, const Item& item, int l, std::int64_t p,
                                            const DeviceLevel& level, T weight, const PointSumsOf<T>& sums) {
  const bool nearest = call.inputs.nearest;
  if (call.weights.data != nullptr)
    write_any(call.weights, call.weights.row(item.n, item.q, item.m) + call.weight_offsets.at(l, p, level),
              sums.weight);
  if (call.locations.data == nullptr) return;
  const std::int64_t at = call.locations.row(item.n, item.q, item.m) + call.location_offsets.at(l, p, level);
  write_any(call.locations, at, nearest ? T(0) : weight * static_cast<T>(level.width) * sums.x);
  write_any(call.locations, at + call.locations.axis, nearest ? T(0) : weight * static_cast<T>(level.height) * sums.y);
}

/// The power of two that the terms of deterministic sums are multiplied by, so that no sum leaves 62 bits: a term is at
/// most the largest gradient times the largest weight.
__device__ __forceinline__ int fixed_exponent(const BackwardCall& call) {
  const float gradient = __uint_as_float(call.largest[0]);
  const float weight = __uint_as_float(call.largest[1]);
  if (gradient == 0.0f || weight == 0.0f) return 0;
  return 60 - call.count_bits - (ilogbf(gradient) + ilogbf(weight) + 2);
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
