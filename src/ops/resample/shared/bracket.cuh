// The search for a target in a window of timestamps in shared memory.
#pragma once

#include "ops/resample/shared/window.cuh"

namespace tmaops::ops::resample::gpu {

/// The two samples around a target, as place() needs them: i = earlier_sample(...), timestamps x and next of i and i +
/// 1 (the same for a single sample).
template <class Time>
struct Interval {
  int i;
  Time x;
  Time next;
};

/// Among `count` >= 4 timestamps at(0), ..., from the guess i on: the four timestamps there are read at once, and as
/// long as q is not among them, the guess is moved by the distance that is left. `pace`: samples per unit of time.
/// Evenly spread timestamps take one round, random ones two.
template <class Time, class At>
__device__ __forceinline__ Interval<Time> find_near(const At& at, int count, int i, float pace, Time q) {
  constexpr int kRounds = 4;  // more would make clustered timestamps slower than the binary search
  const int most = count - 4;
  const auto span = static_cast<float>(count);
  const auto moved = [&](Time from, int by) {  // by the distance to q and `by` samples; any floats give a place inside
    const float far = static_cast<float>(difference(q, from)) * pace;
    return max(min(static_cast<int>(fminf(fmaxf(far, -span), span)) + by, most), 0);
  };
  i = max(min(i, most), 0);
  Time near[4];
#pragma unroll 1
  for (int round = 0;; ++round) {
#pragma unroll
    for (int k = 0; k < 4; ++k) near[k] = at(i + k);
    const bool below = q < near[0] && i > 0;
    const bool above = q >= near[3] && i < most;
    if (!below && !above) break;
    if (round == kRounds) {
      i = max(min(count_until<int>(at, 0, count, q) - 2, most), 0);
#pragma unroll
      for (int k = 0; k < 4; ++k) near[k] = at(i + k);
      break;
    }
    i = below ? min(moved(near[0], i - 2), i - 1) : max(moved(near[3], i + 2), i + 1);
  }
  const bool second = q >= near[1];
  const bool third = q >= near[2];
  return {i + (second ? 1 : 0) + (third ? 1 : 0), third ? near[2] : (second ? near[1] : near[0]),
          third ? near[3] : (second ? near[2] : near[1])};
}

/// The same in global memory, for what a window does not hold. Rare: kept out of the way.
template <class Time>
__device__ __noinline__ Interval<Time> interval_outside(const Time* timestamps, int samples, int guess, float pace,
                                                        Time q) {
  const auto at = [&](int i) { return __ldg(timestamps + i); };
  if (samples >= 4) return find_near(at, samples, guess, pace, q);
  const int i = earlier_sample(count_until<int>(at, 0, samples, q), samples);
  return {i, at(i), at(samples > 1 ? i + 1 : i)};
}

/// In the window `x` of samples `range`, with a first guess from the distance to both ends.
template <class Time>
__device__ __forceinline__ Interval<Time> find_interval(const Time* timestamps, int samples, const Time* x, Range range,
                                                        Time q) {
  if (range.count < 4) return interval_outside(timestamps, samples, 0, 0.0f, q);
  const Time low = x[0];
  const Time high = x[range.count - 1];
  const float pace = __fdividef(static_cast<float>(range.count - 1), static_cast<float>(difference(high, low)));
  const auto most = static_cast<float>(samples);
  const int guess = static_cast<int>(fminf(fmaxf(static_cast<float>(difference(q, low)) * pace, -most), most)) - 1;
  if ((q < low && range.first > 0) || (q >= high && range.first + range.count < samples))
    return interval_outside(timestamps, samples, range.first + guess, pace, q);
  Interval<Time> found = find_near([&](int i) { return x[i]; }, range.count, guess, pace, q);
  found.i += range.first;
  return found;
}

/// What a target of this interval is made of, by the call's policies and interpolation.
template <class Time>
__device__ __forceinline__ Place<int> place_in(const Call& call, int samples, const Interval<Time>& in, Time q) {
  return resolve(call.interpolation, place(call.line, samples, in.i, in.x, in.next, q));
}

/// The place of q from a window; `of.samples` > 0.
template <class Time>
__device__ __forceinline__ Place<int> locate(const Call& call, const Trajectory<Time>& of, const Time* window,
                                             Range range, Time q) {
  return place_in(call, of.samples, find_interval(of.timestamps, of.samples, window, range, q), q);
}

}  // namespace tmaops::ops::resample::gpu
