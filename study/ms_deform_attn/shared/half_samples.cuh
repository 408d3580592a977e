// The arithmetic of the published kernels: coordinates, weights and sums in f16. All of them add the same terms in the
// same order, so their outputs are equal. Where the published kernels read the zeros of a border, these take zeros
// without reading: the border may hold anything, and there may be none. Sums that are not finite are made again by the
// definition.
#pragma once

#include "device/l2.cuh"
#include "study/ms_deform_attn/shared/exact_sums.cuh"
#include "study/ms_deform_attn/shared/half_problem.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// A point as it lies in memory: x and y, and the attention weight.
struct HalfPoint {
  __half2 location;
  __half weight;
};

inline __device__ __half2 as_halves(std::uint32_t word) { return *reinterpret_cast<const __half2*>(&word); }
inline __device__ std::uint32_t as_word(__half2 pair) { return *reinterpret_cast<const std::uint32_t*>(&pair); }

/// Points of a level that follow each other, from the L2: no other thread block reads them. count: 2 or 8.
template <int count>
__device__ __forceinline__ void load_half_points(const Call& call, std::int64_t location_at, std::int64_t weight_at,
                                                 HalfPoint (&points)[count]) {
  static_assert(count == 2 || count == kHalfPoints);
  const auto* locations = static_cast<const __half*>(call.locations.data) + location_at;
  const auto* weights = static_cast<const __half*>(call.weights.data) + weight_at;
  if (!call.point_vectors) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      points[i] = {
          as_halves(device::load_l2(reinterpret_cast<const std::uint32_t*>(locations + i * call.locations.point))),
          device::load_l2(weights + i * call.weights.point)};
    return;
  }
  std::uint32_t pairs[count];
  std::uint32_t factors[count / 2];
  if constexpr (count == 2) {
    const uint2 two = device::load_l2(reinterpret_cast<const uint2*>(locations));
    pairs[0] = two.x, pairs[1] = two.y;
    factors[0] = device::load_l2(reinterpret_cast<const std::uint32_t*>(weights));
  } else {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const uint4 four = device::load_l2(reinterpret_cast<const uint4*>(locations + 2 * i));
      pairs[i] = four.x, pairs[i + 1] = four.y, pairs[i + 2] = four.z, pairs[i + 3] = four.w;
      const uint2 two = device::load_l2(reinterpret_cast<const uint2*>(weights + i));
      factors[i / 2] = two.x, factors[i / 2 + 1] = two.y;
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const __half2 factor = as_halves(factors[i / 2]);
    points[i] = {as_halves(pairs[i]), i % 2 == 0 ? __low2half(factor) : __high2half(factor)};
  }
}

/// A sample: corners upper left, upper right, lower left, lower right.
struct HalfSample {
  int offset = 0;       // of the first corner behind [n, 0, m, 0], in units of 16 bytes; the corner may lie outside
  unsigned inside = 0;  // bit k: corner k lies in the level; 0 for a skipped sample
  __half2 upper{};      // weights of the upper corners, times the attention weight; 0 for a skipped sample
  __half2 lower{};
};

/// Units of 16 bytes from a pixel to the next.
__device__ __forceinline__ int pixel_pieces(const Call& call) {
  return static_cast<int>(call.value.row / device::kPerVector<__half>);
}

__device__ __forceinline__ HalfSample half_sample(const Call& call, const DeviceLevel& level, const HalfPoint& point) {
  // In pixels of a level with a border of one pixel: 0 is where samples begin to touch the level.
  const float2 size = {static_cast<float>(level.width), static_cast<float>(level.height)};
  const __half2 one = __float2half2_rn(1.0f);
  const __half2 at = __hfma2(point.location, __float22half2_rn(size), __float2half2_rn(0.5f));
  const __half2 end = __floats2half2_rn(size.x + 1, size.y + 1);
  const bool taken = __hgt(__low2half(at), __half(0.0f)) && __hgt(__high2half(at), __half(0.0f)) &&
                     __hlt(__low2half(at), __low2half(end)) && __hlt(__high2half(at), __high2half(end));
  HalfSample sample;
  if (taken) {
    const __half2 first = h2floor(at);
    const __half2 high = __hsub2(at, first);
    const __half2 low = __hsub2(one, high);
    const int column = __half2int_rz(__low2half(first)) - 1;
    const int row = __half2int_rz(__high2half(first)) - 1;
    const __half2 columns = __halves2half2(__low2half(low), __low2half(high));
    const __half2 weight = __half2half2(point.weight);
    sample.upper = __hmul2(__hmul2(columns, __high2half2(low)), weight);
    sample.lower = __hmul2(__hmul2(columns, __high2half2(high)), weight);
    const unsigned left_right = (column >= 0 ? 1u : 0u) | (column + 1 < level.width ? 2u : 0u);
    sample.inside = (row >= 0 ? left_right : 0u) | (row + 1 < level.height ? left_right << 2 : 0u);
    sample.offset = static_cast<int>(level.value_at / device::kPerVector<__half>) +
                    (row * level.pitch + column) * pixel_pieces(call);
  }
  return sample;
}

/// Weight of corner k in both halves.
__device__ __forceinline__ __half2 corner_weight(const HalfSample& sample, int k) {
  const __half2 pair = k / 2 == 0 ? sample.upper : sample.lower;
  return k % 2 == 0 ? __low2half2(pair) : __high2half2(pair);
}

/// sum += weight * eight channels.
__device__ __forceinline__ void add_halves(__half2 (&sum)[4], const uint4& piece, __half2 weight) {
  const std::uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = __hfma2(weight, as_halves(words[i]), sum[i]);
}

/// Adds the four corners of a sample; `map` is where this thread's channels begin.
__device__ __forceinline__ void add_half_sample(__half2 (&sum)[4], const uint4* map, const HalfSample& sample,
                                                int right, int down) {
  uint4 pieces[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    pieces[k] = make_uint4(0, 0, 0, 0);
    if ((sample.inside >> k & 1u) != 0)
      pieces[k] = device::load_16(map + sample.offset + (k % 2 != 0 ? right : 0) + (k / 2 != 0 ? down : 0));
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) add_halves(sum, pieces[k], corner_weight(sample, k));
}

/// Stores channels d to d + 7 of an item.
__device__ __forceinline__ void store_half_sums(const Call& call, const Item& item, int d, const __half2 (&sum)[4]) {
  float wide[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(sum[i]);
    wide[2 * i] = pair.x, wide[2 * i + 1] = pair.y;
  }
  if (!all_finite(wide)) sum_exactly<__half, __half>(call, item, d, wide);
  device::store_16_l2(output_channel<__half>(call, item, d), device::pack_16<__half>(wide));
}

/// The work of a kernel with four threads per item.
inline Work half_work(const LaunchSite& site, void (*kernel)(Call), int threads, const Problem& problem,
                      const Arguments& arguments, std::size_t shared_bytes = 0) {
  const Call call = forward_call(problem, arguments);
  LaunchShape shape = one_group_each(call.items, threads, kHalfLaneBits, arguments.dependent_launch);
  shape.shared_bytes = static_cast<int>(shared_bytes);
  Work work(site, problem.device);
  work.add(kernel, shape, call);
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
