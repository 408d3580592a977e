// What a target of a plain call is made of.
#pragma once

#include "ops/resample/shared/bracket.cuh"

namespace tmaops::ops::resample::gpu {

/// With at least two samples, targets outside held, no gaps. NaN gives NaN.
template <class Time>
__device__ __forceinline__ Place<int> place_in(Interpolation interpolation, const Interval<Time>& in, Time q) {
  const Time from = difference(q, in.x);
  const float weight = static_cast<float>(from) / static_cast<float>(difference(in.next, in.x));
  Place<int> at{in.i, weight < kLeastWeight ? kLeastWeight : (weight > kMostWeight ? kMostWeight : weight)};
  if (q <= in.x) at.weight = 0.0f;
  if (q >= in.next) at = {in.i + 1, 0.0f};  // only when i + 1 is the last sample
  if constexpr (std::is_floating_point_v<Time>)
    if (q != q) at.weight = missing();  // a float beyond both ends may be infinite, and its weight NaN
  if (interpolation == Interpolation::linear) return at;
  at.next_nearer = difference(in.next, q) < from;
  return resolve(interpolation, at);
}

}  // namespace tmaops::ops::resample::gpu
