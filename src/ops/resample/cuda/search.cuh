// The search for a target in a window of stamps in shared memory.
#pragma once

#include "ops/resample/cuda/window.cuh"

namespace tmaops::ops::resample::cuda {

/// The two samples around a target, as place() needs them: i = earlier_sample(...), stamps x and next of i and i + 1
/// (the same for a single sample).
template <class Time>
struct Interval {
  int i;
  Time x;
  Time next;
};

/// In global memory, from the neighbourhood of a window that did not hold q: steps of 1, 2, 4, ...
template <class Time>
__device__ __noinline__ Interval<Time> interval_outside(const Time* stamps, int samples, Range window, bool before,
                                                        Time q) {
  const auto at = [&](int i) { return __ldg(stamps + i); };
  int step = 1;
  int until = 0;
  if (before) {
    int high = window.first;
    while (high - step >= 0 && !(at(high - step) <= q)) {
      high -= step;
      step *= 2;
    }
    until = count_until<int>(at, max(high - step, 0), high, q);
  } else {
    int low = window.first + window.count;
    while (low + step <= samples && at(low + step - 1) <= q) {
      low += step;
      step *= 2;
    }
    until = count_until<int>(at, low, min(low + step - 1, samples), q);
  }
  const int i = earlier_sample(until, samples);
  return {i, at(i), at(samples > 1 ? i + 1 : i)};
}

/// In the window `x` of samples `range`: a first guess from the distance to both ends, some steps from there, then a
/// binary search. (The search alone: 5.8 us against 5.4 at 64,4096->1024,32.)
template <class Time>
__device__ __forceinline__ Interval<Time> find_interval(const Time* stamps, int samples, const Time* x, Range range,
                                                        Time q) {
  constexpr int kSteps = 8;  // more would make clustered stamps slower than the binary search
  if (range.count < 2) return interval_outside(stamps, samples, Range{}, false, q);
  const int last = range.count - 2;
  const Time low = x[0];
  const Time high = x[last + 1];
  const bool before = q < low;
  if ((before && range.first > 0) || (q >= high && range.first + range.count < samples))
    return interval_outside(stamps, samples, range, before, q);
  const float ahead = __fdividef(static_cast<float>(difference(q, low)), static_cast<float>(difference(high, low)));
  int i = max(min(static_cast<int>(ahead * static_cast<float>(last + 1)), last), 0);
  Time here = x[i];
  Time next = x[i + 1];
#pragma unroll 1
  for (int step = 0;; ++step) {
    if (step == kSteps) {
      i = earlier_sample(count_until<int>([&](int at) { return x[at]; }, 0, range.count, q), range.count);
      return {range.first + i, x[i], x[i + 1]};
    }
    if (q < here && i > 0) {
      next = here;
      here = x[--i];
    } else if (q >= next && i < last) {
      here = next;
      next = x[++i + 1];
    } else {
      return {range.first + i, here, next};
    }
  }
}

/// What a target of this interval is made of, by the call's policies and interpolation.
template <class Time>
__device__ __forceinline__ Place<int> place_in(const Call& call, int samples, const Interval<Time>& in, Time q) {
  return resolve(call.interpolation, place(call.line, samples, in.i, in.x, in.next, q));
}
/// Of a plain call: at least two samples, hold outside. NaN gives NaN.
template <class Time>
__device__ __forceinline__ Place<int> place_in(const PlainCall& call, int, const Interval<Time>& in, Time q) {
  const Time from = difference(q, in.x);
  const float weight = static_cast<float>(from) / static_cast<float>(difference(in.next, in.x));
  Place<int> at{in.i, weight < kLeastWeight ? kLeastWeight : (weight > kMostWeight ? kMostWeight : weight)};
  if (q <= in.x) at.weight = 0.0f;
  if (q >= in.next) at = {in.i + 1, 0.0f};  // only when i + 1 is the last sample
  if constexpr (std::is_floating_point_v<Time>)
    if (q != q) at.weight = missing();  // a float beyond both ends may be infinite, and its weight NaN
  if (call.interpolation == Interpolation::linear) return at;
  at.next_nearer = difference(in.next, q) < from;
  return resolve(call.interpolation, at);
}

/// The place of q from a window; `of.samples` > 0.
template <class Time, class AnyCall>
__device__ __forceinline__ Place<int> locate(const AnyCall& call, const Trajectory<Time>& of, const Time* window,
                                             Range range, Time q) {
  return place_in(call, of.samples, find_interval(of.stamps, of.samples, window, range, q), q);
}

}  // namespace tmaops::ops::resample::cuda
