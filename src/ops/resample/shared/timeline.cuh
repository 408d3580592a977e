// Where a target lies among the samples of its trajectory, on the device. The definition is
// ops/resample/shared/reference_bracket.hpp; this is the same in f32, or f64 for f64 values: differences of times in
// their own type, then rounded once.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "device/vector.cuh"
#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample::gpu {

/// What a target is made of: with weight 0 of sample `row` alone, with weight NaN of nothing (the output is NaN), else
/// of samples `row` and `row + 1`, both of which exist. Below 0 and above 1 when extrapolating.
template <class Index, class Weight = float>
struct Place {
  Index row = 0;
  Weight weight = 0;
  bool next_nearer = false;  // sample row + 1 is strictly closer
};

inline constexpr float kLeastWeight = 0x1p-126f;       // strictly between two samples, the weight stays so
inline constexpr float kMostWeight = 1.0f - 0x1p-24f;  // when it is rounded
__device__ __forceinline__ float missing() { return __int_as_float(0x7fffffff); }

/// later - earlier in the time's own type; wraps where the data checks would have refused the times.
template <class Time>
__device__ __forceinline__ Time difference(Time later, Time earlier) {
  if constexpr (std::is_same_v<Time, std::int64_t>)
    return static_cast<Time>(static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier));
  else
    return later - earlier;
}

/// Whether a step between two samples is longer than max_gap.
template <class Time>
__device__ __forceinline__ bool is_gap(const Timeline& line, Time step) {
  if constexpr (std::is_same_v<Time, std::int64_t>)
    return line.max_gap_ns != 0 && step > line.max_gap_ns;
  else if constexpr (std::is_same_v<Time, float>)  // step <= max_gap exactly when it is <= the float below max_gap
    return line.max_gap != 0 && step > __double2float_rd(line.max_gap);
  else
    return line.max_gap != 0 && step > line.max_gap;
}

/// Samples with times x and next belong to one piece.
template <class Time>
__device__ __forceinline__ bool joined(const Timeline& line, Time x, Time next) {
  return next != x && !is_gap(line, difference(next, x));
}

/// Point t of the uniform grid: product rounded, then the sum, never contracted to one operation.
template <class Time>
__device__ __forceinline__ Time grid_time(const Timeline& line, std::int64_t t) {
  if constexpr (std::is_same_v<Time, std::int64_t>)
    return line.grid_start_ns + t * line.grid_period_ns;
  else
    return static_cast<Time>(__dadd_rn(line.grid_start, __dmul_rn(static_cast<double>(t), line.grid_period)));
}

/// Target t of trajectory b.
template <class Time>
__device__ __forceinline__ Time target_time(const Timeline& line, std::int64_t b, std::int64_t t) {
  if (line.uniform_grid) return grid_time<Time>(line, t);
  return device::load_now(line.target.at<const Time>(b, t));
}

/// The number of timestamps at or before q, of at(low) to at(high - 1) and all before: binary search. In range for any
/// data.
template <class Index, class Time, class At>
__device__ __forceinline__ Index count_until(const At& at, Index low, Index high, Time q) {
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (at(middle) <= q)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The earlier of the two samples that place() needs, when `until` of `count` timestamps are at or before the target.
template <class Index>
__device__ __forceinline__ Index earlier_sample(Index until, Index count) {
  const Index last = count > 1 ? count - 2 : 0;
  return until < 1 ? 0 : (until - 1 < last ? until - 1 : last);
}

/// The place of time q in a trajectory of `count` > 0 samples, from the times x and next of samples i and i + 1, where
/// i = earlier_sample(...); next = x for a single sample.
template <class Weight = float, class Index, class Time>
__device__ __forceinline__ Place<Index, Weight> place(const Timeline& line, Index count, Index i, Time x, Time next,
                                                      Time q) {
  const Index later = count > 1 ? i + 1 : i;
  if constexpr (std::is_floating_point_v<Time>)
    if (q != q) return {i, missing()};
  if (q == next) return {later, 0.0f};  // only when i + 1 is the last sample
  if (q == x) return {i, 0.0f};
  const bool before = q < x;
  const bool outside = before || q > next;
  const bool piece = joined(line, x, next);
  if (outside) {
    // A kernel cannot throw: what is an error on the CPU is NaN here, never a number.
    if (line.outside == Outside::nan || line.outside == Outside::error) return {i, missing()};
    if (line.outside != Outside::extrapolate || count < 2 || !piece) return {before ? i : later, 0.0f};
  } else if (!piece) {
    return {i, missing()};
  }
  const Time from = difference(q, x);
  const Time to = difference(next, q);
  Weight weight = static_cast<Weight>(from) / static_cast<Weight>(difference(next, x));
  using Limits = std::numeric_limits<Weight>;  // of f32: kLeastWeight and kMostWeight
  if (!outside) weight = fmin(fmax(weight, Limits::min()), 1 - Limits::epsilon() / 2);
  return {i, weight, to < from};
}

/// previous, next and nearest are one of the two samples: the place with weight 0 at that sample. Others as they are.
template <class Index, class Weight>
__device__ __forceinline__ Place<Index, Weight> resolve(Interpolation interpolation, const Place<Index, Weight>& at) {
  if (interpolation == Interpolation::linear || interpolation == Interpolation::cubic ||
      interpolation == Interpolation::slerp || !(fabs(at.weight) > Weight(0)))
    return at;
  const bool later = at.weight >= Weight(1) ||
                     (at.weight > Weight(0) && (interpolation == Interpolation::next ||
                                                (interpolation == Interpolation::nearest && at.next_nearer)));
  return {later ? at.row + 1 : at.row, 0};
}

}  // namespace tmaops::ops::resample::gpu
