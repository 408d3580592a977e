// Items and their sampling points, read from memory.
#pragma once

#include "device/convert.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/ms_deform_attn/shared/types.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Image, query and head of item (n * Lq + q) * M + m.
struct Item {
  std::int64_t n = 0;
  std::int64_t q = 0;
  std::int64_t m = 0;
};

__device__ __forceinline__ Item item_at(const Call& call, std::int64_t index) {
  if (call.items <= INT32_MAX) {  // divisions of 64 bits take some hundred instructions
    const auto i = static_cast<std::uint32_t>(index);
    const auto heads = static_cast<std::uint32_t>(call.heads);
    const auto queries = static_cast<std::uint32_t>(call.queries);
    const std::uint32_t row = i / heads;
    const std::uint32_t n = row / queries;
    return {n, row - n * queries, i - row * heads};
  }
  const std::int64_t row = index / call.heads;
  const std::int64_t n = row / call.queries;
  return {n, row - n * call.queries, index - row * call.heads};
}

/// The channels of the first pixel of an item's image and head.
template <class Value>
__device__ __forceinline__ const Value* first_pixel(const Call& call, const Item& item) {
  return static_cast<const Value*>(call.value.data) + call.value.at(item.n, 0, item.m);
}

/// Element `at` of locations or weights, as f32 or f64.
template <class Point, class T = float>
__device__ __forceinline__ T read_point(const PointRows& rows, std::int64_t at) {
  if constexpr (!std::is_same_v<Point, AnyType>) {
    return device::widen(__ldg(static_cast<const Point*>(rows.data) + at));
  } else {
    if (rows.dtype == DType::f16) return device::widen(__ldg(static_cast<const __half*>(rows.data) + at));
    if (rows.dtype == DType::bf16) return device::widen(__ldg(static_cast<const __nv_bfloat16*>(rows.data) + at));
    if (rows.dtype == DType::f32) return __ldg(static_cast<const float*>(rows.data) + at);
    return static_cast<T>(__ldg(static_cast<const double*>(rows.data) + at));
  }
}

/// x, y and attention weight of a sample.
template <class T>
struct PointOf {
  T x = 0;
  T y = 0;
  T weight = 0;
};
using Point3 = PointOf<float>;

/// Elements `at` and `at + 1` as f32, by one load.
template <class Point>
__device__ __forceinline__ float2 load_pair(const void* data, std::int64_t at) {
  const void* pair = static_cast<const Point*>(data) + at;
  if constexpr (std::is_same_v<Point, float>) {
    return __ldg(static_cast<const float2*>(pair));
  } else {
    using Pair = std::conditional_t<std::is_same_v<Point, __half>, __half2, __nv_bfloat162>;
    const Pair two = __ldg(static_cast<const Pair*>(pair));
    return {__low2float(two), __high2float(two)};
  }
}

/// A point whose x and y lie next to each other: one load for both.
template <class Point>
__device__ __forceinline__ Point3 load_point(const Call& call, std::int64_t location_at, std::int64_t weight_at) {
  const float weight = read_point<Point>(call.weights, weight_at);
  if constexpr (std::is_same_v<Point, AnyType>) {
    return {read_point<Point>(call.locations, location_at), read_point<Point>(call.locations, location_at + 1), weight};
  } else {
    const float2 pair = load_pair<Point>(call.locations.data, location_at);
    return {pair.x, pair.y, weight};
  }
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
