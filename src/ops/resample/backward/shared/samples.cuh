// What a target gives to a sample, from the timestamps of the sample and its two neighbours alone.
#pragma once

#include "device/warp.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/warp_count.cuh"

namespace tmaops::ops::resample_backward {

using namespace resample::gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code
using resample::Timeline;

/// The targets of one trajectory.
template <class Time>
struct TargetTimes {
  const Timeline& line;
  std::int64_t b;
  std::int64_t count;
  __device__ __forceinline__ Time operator()(std::int64_t t) const { return target_time<Time>(line, b, t); }

  /// Whether no target of [first, end) is NaN or behind the next one, as far as this thread looks.
  __device__ __forceinline__ bool in_order(std::int64_t first, std::int64_t end) const {
    bool ordered = true;
#pragma unroll 4
    for (std::int64_t t = first + threadIdx.x; t < end; t += blockDim.x)
      ordered = ordered && (*this)(t) <= (*this)(min(t + 1, count - 1));
    return ordered;
  }
};

template <class Time>
struct Sample {
  std::int64_t s;
  std::int64_t count;  // samples of the trajectory
  Time before, here, after;

  /// The part that sample s has in a target at time q.
  template <class T>
  __device__ __forceinline__ T part(const Timeline& line, Interpolation interpolation, Time q) const {
    using Index = std::int64_t;
    const Index last = count > 1 ? count - 2 : 0;
    const Index i = min(max(q >= here ? s : s - 1, Index{0}), last);
    const Time x = i == s ? here : before;
    const Time next = count < 2 ? x : (i == s ? after : here);
    if ((i > 0 && q < x) || (i < last && q >= next)) return 0;  // of other samples
    const Place<Index, T> at = resolve(interpolation, place<T>(line, count, i, x, next, q));
    if (at.weight != at.weight) return 0;
    return at.row == s ? 1 - at.weight : (at.row + 1 == s ? at.weight : T(0));
  }
};

template <class Time>
__device__ __forceinline__ Sample<Time> sample_of(const Timeline& line, std::int64_t b, std::int64_t s,
                                                  std::int64_t count) {
  const auto* timestamps = line.source.at<const Time>(b);
  const auto at = [&](std::int64_t i) {
    return __ldg(timestamps + min(max(i, std::int64_t{0}), count - 1) * line.source.row_stride);
  };
  return {s, count, at(s - 1), at(s), at(s + 1)};
}

/// Sums what the targets give to a sample, channel by channel: store(channel, sum of part * load(target, channel)) for
/// `channels` channels; all lanes of a warp together. Targets that are not `ordered` are all looked at.
template <class T, class Time, class Load, class Store>
__device__ __forceinline__ void sum_sample(const Timeline& line, Interpolation interpolation,
                                           const Sample<Time>& sample, const TargetTimes<Time>& targets, bool ordered,
                                           std::int64_t channels, const Load& load, const Store& store) {
  const auto before = [&](std::int64_t t) { return targets(t) < sample.before; };
  const std::int64_t begin = ordered && sample.s >= 2 ? count_by_warp(targets.count, before) : 0;
  const bool to_the_end = !ordered || sample.s + 2 >= sample.count;
  for (std::int64_t base = 0; base < channels; base += device::kWarpThreads) {
    const std::int64_t channel = base + device::lane_index();
    T sum = 0;
    for (std::int64_t t0 = begin; t0 < targets.count; t0 += device::kWarpThreads) {
      const std::int64_t t = t0 + device::lane_index();
      T part = 0;
      bool behind = false;
      if (t < targets.count) {
        const Time q = targets(t);
        part = sample.template part<T>(line, interpolation, q);
        behind = q >= sample.after;
      }
      for (unsigned left = __ballot_sync(0xffffffffu, part != 0); left != 0; left &= left - 1) {
        const int from = __ffs(static_cast<int>(left)) - 1;
        const T one = __shfl_sync(0xffffffffu, part, from);
        if (channel < channels) sum = fma(one, load(t0 + from, channel), sum);
      }
      if (!to_the_end && __any_sync(0xffffffffu, behind)) break;
    }
    if (channel < channels) store(channel, sum);
  }
}

}  // namespace tmaops::ops::resample_backward
