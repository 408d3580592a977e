// The value's gradient from the lists: every pixel is summed by one warp, and no addition is atomic.
#pragma once

#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/lists.cuh"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// Sums of integers, the same for any order. A product is rounded to the unit by adding 3 * 2^51 to it: the sum's low
/// bits are then that integer. Exact, because a product of two f32 is, and stays below 2^50 units.
struct FixedTotals {
  static constexpr double kRounder = 6755399441055744.0;  // 3 * 2^51
  long long sums[kFour] = {};
  __device__ __forceinline__ void add(const float (&gradient)[kFour], float weight, double scale) {
    const double scaled = static_cast<double>(weight) * scale;
#pragma unroll
    for (int i = 0; i < kFour; ++i)
      sums[i] += __double_as_longlong(fma(scaled, static_cast<double>(gradient[i]), kRounder)) -
                 __double_as_longlong(kRounder);
  }
  __device__ __forceinline__ void merge(int offset) {
#pragma unroll
    for (long long& sum : sums) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  __device__ __forceinline__ float total(int i, double unit) const {
    return static_cast<float>(static_cast<double>(sums[i]) * unit);
  }
};

/// One warp's strip: pixels [begin, end) of a row of a level, for one image and head.
struct Strip {
  std::int64_t n = 0;
  std::int64_t m = 0;
  int l = 0;
  int row = 0;
  int begin = 0;
  int end = 0;
};

__device__ __forceinline__ Strip strip_at(const Call& in, const Lists& lists, int warp) {
  int order = 0;
  while (order + 1 < in.level_count && warp >= lists.strips[order + 1].first_warp) ++order;
  const LevelStrips& level = lists.strips[order];
  Strip strip;
  strip.l = level.level;
  const int local = warp - level.first_warp;
  const int height = in.levels[strip.l].height;
  const int strips = level.row_strips * height;
  const int head = local / strips;
  const int rest = local - head * strips;
  strip.row = rest / level.row_strips;
  strip.begin = (rest - strip.row * level.row_strips) * level.pixels;
  strip.end = min(strip.begin + level.pixels, in.levels[strip.l].width);
  const int heads = static_cast<int>(in.heads);
  strip.n = lists.first_image + head / heads;
  strip.m = head % heads;
  return strip;
}

/// Sample i of two lists, one behind the other, as its weight on the left and the right column of a row: that of the
/// second list's samples is their upper one, that of the first list's their lower one.
struct Shares {
  int query = 0;
  float left = 0;
  float right = 0;
};

__device__ __forceinline__ Shares share(const Listed* samples, unsigned i, const uint2& above, const uint2& here) {
  const unsigned upper = above.y - above.x;
  const uint4 words = device::load_16(samples + (i < upper ? above.x + i : here.x + (i - upper)));
  const float across = __uint_as_float(words.z);
  const float vertical = i < upper ? __uint_as_float(words.w) : 1 - __uint_as_float(words.w);
  const float weight = __uint_as_float(words.y);
  return {static_cast<int>(words.x), weight * (vertical * (1 - across)), weight * (vertical * across)};
}

/// A pixel whose samples' gradients or weights are not all finite, for integer sums: those terms are added in f32,
/// where infinities and NaN add up to the same in any order. `left_...`: the lists of the column to the left, whose
/// samples' right corners lie here. Rare, so each thread goes through the lists alone.
template <class Gradient>
__device__ __forceinline__ float4 sum_not_finite(const Listed* samples, const Gradient* rows, std::int64_t row_step,
                                                 uint2 left_above, uint2 left_here, uint2 above, uint2 here,
                                                 double scale, double unit) {
  FixedTotals finite;
  float others[kFour] = {};
  const unsigned left = left_above.y - left_above.x + left_here.y - left_here.x;
  const unsigned count = left + above.y - above.x + here.y - here.x;
#pragma unroll 1
  for (unsigned i = 0; i < count; ++i) {
    const Shares shares = i < left ? share(samples, i, left_above, left_here) : share(samples, i - left, above, here);
    const float weight = i < left ? shares.right : shares.left;
    float gradient[kFour];
    load_four(rows + shares.query * row_step, gradient);
#pragma unroll
    for (int k = 0; k < kFour; ++k) {
      const float term = weight * gradient[k];
      if (fabsf(term) <= 3.402823466e38f) continue;
      others[k] += term;
      gradient[k] = 0;
    }
    if (fabsf(weight) <= 3.402823466e38f) finite.add(gradient, weight, scale);
  }
  return {finite.total(0, unit) + others[0], finite.total(1, unit) + others[1], finite.total(2, unit) + others[2],
          finite.total(3, unit) + others[3]};
}

/// Writes four channels of a pixel; `vectors`: by one store.
template <class To>
__device__ __forceinline__ void write_four(const ChannelRows& to, bool vectors, std::int64_t at,
                                           const float (&totals)[kFour]) {
  To* made = static_cast<To*>(const_cast<void*>(to.data)) + at;
  if (vectors) return store_four(made, totals);
#pragma unroll
  for (int i = 0; i < kFour; ++i) made[i * to.channel] = device::narrow<To>(totals[i]);
}

/// Where the sums go.
struct SumsTo {
  ChannelRows rows{};
  DType dtype = DType::f32;
  bool vectors = false;  // four channels lie next to each other, at a multiple of their bytes
  int lane_bits = 0;     // log2 of the threads that read one row of four channels each
  int warps = 0;
};

/// One warp per strip. It goes along the columns of upper left corners; a sample adds its left share to that column and
/// its right share to the next, so that every list is read twice in all: for the row of its samples and the one below.
template <class Gradient>
__global__ void __launch_bounds__(kBackwardThreads)
    sum_pixels(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists,
               const __grid_constant__ SumsTo to) {
  const Call& in = call.inputs;
  const int warp = static_cast<int>(blockIdx.x) * kBackwardWarps + device::warp_index();
  if (warp >= to.warps) return;
  const int lane = device::lane_index();
  const int d = (lane & ((1 << to.lane_bits) - 1)) * kFour;
  const unsigned group = static_cast<unsigned>(lane) >> to.lane_bits;
  const unsigned groups = 32u >> to.lane_bits;
  const Strip strip = strip_at(in, lists, warp);
  if (strip.n >= lists.first_image + lists.images) return;  // fewer images than at other times
  const DeviceLevel& level = in.levels[strip.l];
  const Gradient* rows = static_cast<const Gradient*>(in.output.data) + in.output.at(strip.n, 0, strip.m) + d;
  const int exponent = fixed_exponent(call);
  const double scale = scalbn(1.0, exponent);
  const double unit = scalbn(1.0, -exponent);

  // Thread i of the warp holds the ranges of column begin - 1 + i.
  const Item item{strip.n, 0, strip.m};
  const int mine = min(strip.begin - 1 + lane, strip.end - 1);
  const uint2 own_above = lists.ranges[lists.at(in, item, strip.l, level.width, strip.row - 1, mine)];
  const uint2 own_here = lists.ranges[lists.at(in, item, strip.l, level.width, strip.row, mine)];
  const auto range = [](const uint2& own, int i) {
    return uint2{__shfl_sync(0xffffffffu, own.x, i), __shfl_sync(0xffffffffu, own.y, i)};
  };

  FixedTotals next;
  bool odd_next = false;
  for (int column = strip.begin - 1; column < strip.end; ++column) {
    const uint2 above = range(own_above, column - strip.begin + 1);
    const uint2 here = range(own_here, column - strip.begin + 1);
    const unsigned count = above.y - above.x + here.y - here.x;
    FixedTotals current = next;
    next = FixedTotals{};
    bool odd = odd_next;
    odd_next = false;
    for (unsigned i = group; i < count; i += 2 * groups) {
      const bool second = i + groups < count;
      Shares shares[2] = {share(lists.samples, i, above, here),
                          share(lists.samples, second ? i + groups : i, above, here)};
      float gradient[2][kFour];
#pragma unroll
      for (int k = 0; k < 2; ++k) load_four(rows + shares[k].query * in.output.row, gradient[k]);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        if (k == 1 && !second) break;
        float zero = fmaf(shares[k].left, 0.0f, shares[k].right * 0.0f);
#pragma unroll
        for (const float one : gradient[k]) zero = fmaf(one, 0.0f, zero);
        odd_next = odd_next || zero != 0.0f;
        current.add(gradient[k], shares[k].left, scale);
        next.add(gradient[k], shares[k].right, scale);
      }
    }
    if (column < strip.begin) continue;
    for (unsigned offset = 1u << to.lane_bits; offset < 32; offset *= 2) current.merge(static_cast<int>(offset));
    float totals[kFour];
#pragma unroll
    for (int i = 0; i < kFour; ++i) totals[i] = current.total(i, unit);
    if (__any_sync(0xffffffffu, odd || odd_next)) {
      const int left = column - strip.begin;
      const float4 made = sum_not_finite(lists.samples, rows, in.output.row, range(own_above, left),
                                         range(own_here, left), above, here, scale, unit);
      totals[0] = made.x, totals[1] = made.y, totals[2] = made.z, totals[3] = made.w;
    }
    if (group == 0) {
      const std::int64_t s = level.first_pixel + static_cast<std::int64_t>(strip.row) * level.width + column;
      const std::int64_t at = to.rows.at(strip.n, s, strip.m) + d * to.rows.channel;
      if (to.dtype == DType::f32)
        write_four<float>(to.rows, to.vectors, at, totals);
      else if (to.dtype == DType::f16)
        write_four<__half>(to.rows, to.vectors, at, totals);
      else
        write_four<__nv_bfloat16>(to.rows, to.vectors, at, totals);
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
