// The two interpolations that need more than a weight, PCHIP and slerp, in f32 or f64. Each twice: for every case, with
// the formulas of the CPU variants, and in f32 for the usual one in a third of the instructions.
#pragma once

#include "device/approximate.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::gpu {

/// Lengths of the interval relative to the ones before and after it; negative where there is none in the piece.
template <class T>
struct NeighboursOf {
  T before = -1;
  T after = -1;
};
using Neighbours = NeighboursOf<float>;

template <class Index, class Time, class T = float, class At>
__device__ __forceinline__ NeighboursOf<T> neighbours(const Timeline& line, const At& at, Index count, Index i) {
  NeighboursOf<T> found;
  const Time x = at(i);
  const Time next = at(i + 1);
  const T step = static_cast<T>(difference(next, x));
  if (i > 0) {
    const Time previous = at(i - 1);
    if (joined(line, previous, x)) found.before = step / static_cast<T>(difference(x, previous));
  }
  if (i + 2 < count) {
    const Time second_next = at(i + 2);
    if (joined(line, next, second_next)) found.after = step / static_cast<T>(difference(second_next, next));
  }
  return found;
}

/// PCHIP's slope inside a piece, times the interval: the harmonic mean of the rises over the interval and beside it,
/// with weights that add up to 1; 0 where one is NaN. An infinite one beside counts as very steep: with infinity itself
/// the slope would be NaN.
template <class T>
__device__ __forceinline__ T inner_slope(T rise, T beside, T rise_weight) {
  constexpr T kMost = std::numeric_limits<T>::max() / 4;
  const bool same_sign = (rise > 0 && beside > 0) || (rise < 0 && beside < 0);
  const T steep = fmin(fmax(beside, -kMost), kMost);
  return same_sign ? rise * (steep / (rise_weight * steep + (1 - rise_weight) * rise)) : T(0);
}

/// At the end of a piece; `share`: the interval's part of its own length and that of the interval behind it.
template <class T>
__device__ __forceinline__ T end_slope(T rise, T behind, T share) {
  const T slope = (1 + share) * rise - share * behind;
  const bool same_sign = (slope > 0 && rise > 0) || (slope < 0 && rise < 0);
  const bool turns = !((rise > 0 && behind > 0) || (rise < 0 && behind < 0));
  const T limit = 3 * rise;
  const bool beyond = rise > 0 ? slope > limit : slope < limit;
  return same_sign ? (turns && beyond ? limit : slope) : T(0);
}

/// The cubic through y and y_next at weight w. `rise_before` and `rise_after`: the differences of the values before and
/// after, at the slope of their own interval over the length of this one.
template <class T>
__device__ __forceinline__ T pchip(const NeighboursOf<T>& at, T w, T y, T y_next, T rise_before, T rise_after) {
  const bool left = at.before >= 0;
  const bool right = at.after >= 0;
  const T rise = y_next - y;
  if (!left && !right) return fma(w, rise, y);
  const T slope = left ? inner_slope(rise, rise_before, (2 + at.before) / (3 + 3 * at.before))
                       : end_slope(rise, rise_after, at.after / (1 + at.after));
  const T slope_next = right ? inner_slope(rise, rise_after, (2 + at.after) / (3 + 3 * at.after))
                             : end_slope(rise, rise_before, at.before / (1 + at.before));
  const T square = 3 * rise - 2 * slope - slope_next;
  const T cube = slope + slope_next - 2 * rise;
  return fma(w, fma(w, fma(w, cube, square), slope), y);
}

/// PCHIP between two samples that both have a neighbour in the piece, arranged so that a channel costs few
/// instructions. With rise the difference of the two values, and u the one of the neighbour to a side, the slope at
/// that side is proportional to rise (1 - rate s), s = rise / (u + rate rise). Where rise and u have no one sign, s is
/// outside [0, 1 / rate], or NaN; limited to 1 / rate it makes the slope 0, as it should be.
struct CurveSide {
  float rate;
  float limit;  // 1 / rate
  float part;   // factor of s in the sum
};
struct InnerCurve {
  float start;
  CurveSide before, after;
};

/// At weight w; `at` has both neighbours.
__device__ __forceinline__ InnerCurve inner_curve(const Neighbours& at, float w) {
  const auto rate = [](float ratio) { return (2 * ratio + 1) * device::reciprocal((ratio + 2) * ratio); };
  const auto share = [](float ratio) { return (3 * ratio + 3) * device::reciprocal(ratio + 2); };
  const float v = 1 - w;
  const float from = w * v * v * share(at.before);
  const float to = -w * w * v * share(at.after);
  const float before = rate(at.before);
  const float after = rate(at.after);
  return {w * w * (3 - 2 * w) + from + to,
          {before, device::reciprocal(before), -from * before},
          {after, device::reciprocal(after), -to * after}};
}

/// s of one side. Signs and NaN are compared as bits: anything negative is above every limit.
__device__ __forceinline__ float limited_part(float rise, float beside, const CurveSide& side) {
  const float part = rise * device::reciprocal(fmaf(side.rate, rise, beside));
  return __uint_as_float(min(__float_as_uint(part), __float_as_uint(side.limit)));
}

/// The curve through y and y_next, with y_before and y_after around them.
__device__ __forceinline__ float inner_pchip(const InnerCurve& curve, float y_before, float y, float y_next,
                                             float y_after) {
  const float rise = y_next - y;
  const float early = limited_part(rise, y - y_before, curve.before);
  const float late = limited_part(rise, y_after - y_next, curve.after);
  return fmaf(rise, fmaf(curve.after.part, late, fmaf(curve.before.part, early, curve.start)), y);
}

/// Scaled by the largest component first, so that squares neither overflow nor vanish. NaN for what is no quaternion.
template <class Quaternion>
__device__ __forceinline__ Quaternion normalized(Quaternion q) {
  using T = decltype(q.x);
  const T largest = fmax(fmax(fabs(q.x), fabs(q.y)), fmax(fabs(q.z), fabs(q.w)));
  // Two factors: 1 / largest alone overflows for a subnormal.
  const T up = largest < T(0x1p-100) ? T(0x1p60) : T(1);
  const T scale = T(1) / (largest * up);
  q = {q.x * up * scale, q.y * up * scale, q.z * up * scale, q.w * up * scale};
  const T inverse = T(1) / sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
  return {q.x * inverse, q.y * inverse, q.z * inverse, q.w * inverse};
}

/// Between two quaternions along the shortest arc. The angle comes from the chord, |to - from| = 2 sin(angle / 2),
/// whose digits survive between near quaternions; sinpif needs no slow path for the large angles of extrapolation.
template <class Quaternion, class T>
__device__ __forceinline__ Quaternion slerp(Quaternion from, Quaternion to, T w) {
  from = normalized(from);
  to = normalized(to);
  const T sign = from.x * to.x + from.y * to.y + from.z * to.z + from.w * to.w < 0 ? T(-1) : T(1);
  const Quaternion chord = {sign * to.x - from.x, sign * to.y - from.y, sign * to.z - from.z, sign * to.w - from.w};
  const T length = sqrt(chord.x * chord.x + chord.y * chord.y + chord.z * chord.z + chord.w * chord.w);
  const T angle = T(0.63661977236758134) * asin(fmin(T(0.5) * length, T(1)));  // in units of pi
  const T from_weight = angle > 0 ? sinpi((1 - w) * angle) : T(1);
  const T to_weight = angle > 0 ? sign * sinpi(w * angle) : T(0);
  return normalized(Quaternion{fma(from_weight, from.x, to_weight * to.x), fma(from_weight, from.y, to_weight * to.y),
                               fma(from_weight, from.z, to_weight * to.z), fma(from_weight, from.w, to_weight * to.w)});
}

/// The square of an angle of at most a right one from its cosine, and sin(angle) / angle from its square: no root, no
/// arc, no loss of digits between near quaternions. Least squares fits (docs/findings/resample_curves.md, V3).
__device__ __forceinline__ float square_of_angle(float cosine) {
  const float apart = fmaxf(1 - cosine, 0.0f);
  float angle = fmaf(apart, 0.00921768f, -0.0105984f);
  angle = fmaf(apart, angle, 0.02171451f);
  angle = fmaf(apart, angle, 0.02409457f);
  angle = fmaf(apart, angle, 0.08969118f);
  angle = fmaf(apart, angle, 0.33328029f);
  angle = fmaf(apart, angle, 2.00000057f);
  return angle * apart;
}
__device__ __forceinline__ float sine_over_angle(float square) {
  float series = fmaf(square, 2.60190307e-6f, -1.98074187e-4f);
  series = fmaf(square, series, 8.33302514e-3f);
  series = fmaf(square, series, -0.166666567f);
  return fmaf(square, series, 1.0f);
}

/// The same for 0 <= w <= 1 in a third of the instructions. As the result is normalised, only the ratio of the two
/// weights matters, so sin(w angle) may become w times a polynomial in the square of w angle. Error of the result 3e-7.
__device__ __forceinline__ float4 slerp_between(const float4& from, const float4& to, float w) {
  const auto dot = [](const float4& a, const float4& b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; };
  const float square = dot(from, from);
  const float square_to = dot(to, to);
  constexpr float kLeast = 1e-30f;
  constexpr float kMost = 1e30f;
  if (!(square > kLeast && square < kMost && square_to > kLeast && square_to < kMost)) return slerp(from, to, w);
  const float scale = device::reciprocal_root(square);
  const float scale_to = device::reciprocal_root(square_to);
  const float cosine = dot(from, to) * scale * scale_to;
  const float square_angle = square_of_angle(fabsf(cosine));
  const float v = 1 - w;
  const float part = v * sine_over_angle(v * v * square_angle) * scale;
  const float part_to = w * sine_over_angle(w * w * square_angle) * (cosine < 0 ? -scale_to : scale_to);
  const float4 sum = {fmaf(part, from.x, part_to * to.x), fmaf(part, from.y, part_to * to.y),
                      fmaf(part, from.z, part_to * to.z), fmaf(part, from.w, part_to * to.w)};
  const float inverse = device::reciprocal_root(dot(sum, sum));
  return {sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse};
}

/// Bit kLaterBit + previous, next or nearest of the flags: of the two samples it is the later one.
inline constexpr std::uint32_t kLaterBit = 16;

/// The first `count` values of a piece one after the other: every kind, any memory, any alignment. Everything by value:
/// what goes to a function by reference is stored to local memory first.
template <class Value>
__device__ __noinline__ void write_values(unsigned char* to, const unsigned char* from, int width, int count,
                                          std::uint32_t modes, float w, std::uint32_t flags, float before,
                                          float after) {
  auto* out = reinterpret_cast<Value*>(to);
  const auto at = [&](int row, int k) {
    return widen(reinterpret_cast<const Value*>(from + row * static_cast<std::int64_t>(width))[k]);
  };
  const Neighbours around{before, after};
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    const std::uint32_t mode = modes >> (4 * k) & 15u;
    if (w != w) {  // there may be no row at all
      out[k] = narrow<Value>(missing());
    } else if (mode >= 8) {
      const int first = k - static_cast<int>(mode - 8);
      const auto quaternion = [&](int row) {
        return float4{at(row, first), at(row, first + 1), at(row, first + 2), at(row, first + 3)};
      };
      const float4 q = w == 0.0f ? normalized(quaternion(0)) : slerp(quaternion(0), quaternion(1), w);
      const int end = min(first + 4, count);
      for (; k < end; ++k) out[k] = narrow<Value>(k == first ? q.x : k == first + 1 ? q.y : k == first + 2 ? q.z : q.w);
      --k;
    } else if (mode == 0 || (mode == 4 && !(before >= 0 || after >= 0))) {
      out[k] = narrow<Value>(w == 0.0f ? at(0, k) : fmaf(w, at(1, k) - at(0, k), at(0, k)));
    } else if (mode == 4 && w != 0.0f) {
      const float y = at(0, k);
      const float next = at(1, k);
      out[k] = narrow<Value>(pchip(around, w, y, next, before >= 0 ? (y - at(-1, k)) * before : 0.0f,
                                   after >= 0 ? (at(2, k) - next) * after : 0.0f));
    } else {
      out[k] = narrow<Value>(at(mode != 4 && (flags >> (kLaterBit + mode) & 1u) != 0 ? 1 : 0, k));
    }
  }
}

}  // namespace tmaops::ops::resample::gpu
