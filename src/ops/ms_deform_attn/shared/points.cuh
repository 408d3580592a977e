// Items and their sampling points, read from memory, and where a sample lies along one side of a level.
#pragma once

#include <type_traits>

#include "core/cuda_types.hpp"
#include "device/convert.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ms_deform_attn_sites.hpp"
#include "ops/ms_deform_attn/shared/call.hpp"

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

/// A type known at run time only, for locations and weights.
struct AnyType {};

/// Element `at` of locations or weights, as f32.
template <class Point>
__device__ __forceinline__ float read_point(const PointRows& rows, std::int64_t at) {
  if constexpr (!std::is_same_v<Point, AnyType>) {
    return device::widen(__ldg(static_cast<const Point*>(rows.data) + at));
  } else {
    if (rows.dtype == DType::f16) return device::widen(__ldg(static_cast<const __half*>(rows.data) + at));
    if (rows.dtype == DType::bf16) return device::widen(__ldg(static_cast<const __nv_bfloat16*>(rows.data) + at));
    if (rows.dtype == DType::f32) return __ldg(static_cast<const float*>(rows.data) + at);
    return static_cast<float>(__ldg(static_cast<const double*>(rows.data) + at));
  }
}

/// x, y and attention weight of a sample.
struct Point3 {
  float x = 0;
  float y = 0;
  float weight = 0;
};

/// A point whose x and y lie next to each other: one load for both.
template <class Point>
__device__ __forceinline__ Point3 load_point(const Call& call, std::int64_t location_at, std::int64_t weight_at) {
  const float weight = read_point<Point>(call.weights, weight_at);
  if constexpr (std::is_same_v<Point, __half>) {
    const auto pair =
        __ldg(reinterpret_cast<const __half2*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {__low2float(pair), __high2float(pair), weight};
  } else if constexpr (std::is_same_v<Point, __nv_bfloat16>) {
    const auto pair =
        __ldg(reinterpret_cast<const __nv_bfloat162*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {__low2float(pair), __high2float(pair), weight};
  } else if constexpr (std::is_same_v<Point, float>) {
    const auto pair =
        __ldg(reinterpret_cast<const float2*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {pair.x, pair.y, weight};
  } else {
    return {read_point<Point>(call.locations, location_at), read_point<Point>(call.locations, location_at + 1), weight};
  }
}

/// Reads `count` words next to each other, 16 bytes at a time where there are as many.
template <int count>
__device__ __forceinline__ void load_words(std::uint32_t (&to)[count], const void* from) {
  if constexpr (count == 1) {
    to[0] = __ldg(static_cast<const std::uint32_t*>(from));
  } else if constexpr (count == 2) {
    const uint2 piece = __ldg(static_cast<const uint2*>(from));
    to[0] = piece.x, to[1] = piece.y;
  } else {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const uint4 piece = device::load_16(static_cast<const std::uint32_t*>(from) + i);
      to[i] = piece.x, to[i + 1] = piece.y, to[i + 2] = piece.z, to[i + 3] = piece.w;
    }
  }
}

/// Element `i` of 32-bit words that hold T.
template <class T, int count>
__device__ __forceinline__ float element(const std::uint32_t (&words)[count], int i) {
  if constexpr (sizeof(T) == 4)
    return __uint_as_float(words[i]);
  else if constexpr (std::is_same_v<T, __half>)
    return __half2float(__ushort_as_half(static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16))));
  else
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}

/// Points that follow each other, their locations and weights next to each other and aligned: Call::point_vectors.
template <class Point, int count>
__device__ __forceinline__ void load_points(const Point* locations, const Point* weights, Point3 (&points)[count]) {
  constexpr int kWords = count * static_cast<int>(sizeof(Point)) / 4;
  std::uint32_t pairs[2 * kWords];
  std::uint32_t factors[kWords];
  load_words(pairs, locations);
  load_words(factors, weights);
#pragma unroll
  for (int i = 0; i < count; ++i)
    points[i] = {element<Point>(pairs, 2 * i), element<Point>(pairs, 2 * i + 1), element<Point>(factors, i)};
}

/// A sample along one side of a level: pixels `first` and `first + 1` with their bilinear weights. Either pixel may lie
/// outside.
struct Side {
  int first = 0;
  float low = 0;   // weight of `first`
  float high = 0;  // weight of `first + 1`
};

/// False when no pixel is near: then the sample is skipped. Infinite and NaN locations never pass.
__device__ __forceinline__ bool locate(float location, int size, Side& side) {
  const float at = fmaf(location, static_cast<float>(size), -0.5f);
  if (!(at > -1.0f && at < static_cast<float>(size))) return false;
  const float below = floorf(at);
  side.first = static_cast<int>(below);
  side.high = at - below;
  side.low = 1.0f - side.high;
  return true;
}

/// The pixel of nearest sampling; false for a location that is not finite.
__device__ __forceinline__ bool locate_nearest(float location, int size, int& pixel) {
  if (!(fabsf(location) <= 3.402823466e38f)) return false;
  const float at = floorf(fmaf(location, static_cast<float>(size), 0.5f));
  pixel = static_cast<int>(fminf(fmaxf(at, 0.0f), static_cast<float>(size - 1)));
  pixel = min(pixel, size - 1);  // size - 1 may round up
  return true;
}

/// Calls fn(value type, point type) with null pointers. The point type is that of locations and weights where these are
/// equal and of at most 32 bits, else AnyType.
template <class Fn>
void with_types(const Problem& problem, const Fn& fn) {
  with_value_type(problem.value_dtype, [&]<class Value>(Value* value) {
    const DType points = problem.location_dtype == problem.weight_dtype ? problem.location_dtype : DType::f64;
    if (points == DType::f32)
      fn(value, static_cast<float*>(nullptr));
    else if (points == DType::f16)
      fn(value, static_cast<__half*>(nullptr));
    else if (points == DType::bf16)
      fn(value, static_cast<__nv_bfloat16*>(nullptr));
    else
      fn(value, static_cast<AnyType*>(nullptr));
  });
}

template <int number>
using Constant = std::integral_constant<int, number>;

/// Calls fn(Constant<number>()) for a number from first to last; does nothing for any other.
template <int first, int last, class Fn>
void with_constant(int number, const Fn& fn) {
  if (number == first) return fn(Constant<first>());
  if constexpr (first < last) with_constant<first + 1, last>(number, fn);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
