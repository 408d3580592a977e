// Points that lie next to each other, by loads of up to 16 bytes.
#pragma once

#include "ops/ms_deform_attn/shared/points.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

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

}  // namespace tmaops::ops::ms_deform_attn::gpu
