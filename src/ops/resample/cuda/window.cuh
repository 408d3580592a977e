// A window of a trajectory's stamps in shared memory, guessed from where the targets stand in theirs, and the search in
// it. Targets the window does not hold are searched in global memory: any window gives the same result.
#pragma once

#include "core/registry.hpp"
#include "ops/resample/cuda/call.cuh"
#include "ops/resample/cuda/timeline.cuh"

namespace tmaops::ops::resample::cuda {

/// What all variants with 32-bit row numbers and one weight per target take.
inline Support supports_one_weight(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_device(device); !support) return support;
  if (problem.groups.size() != 1) return Support::no("needs one interpolation for all channels");
  const Interpolation interpolation = problem.groups.front().interpolation;
  if (interpolation == Interpolation::cubic || interpolation == Interpolation::slerp)
    return Support::no("needs linear, previous, next or nearest interpolation");
  if (!problem.unit_channel_stride) return Support::no("needs channels next to one another");
  if (problem.channels == 0) return Support::no("needs at least one channel");
  constexpr std::int64_t most = 1 << 30;
  if (problem.source > most || problem.target > most) return Support::no("needs at most 2^30 samples and targets");
  return Support::yes();
}

/// The same for those that copy windows of stamps.
inline Support supports_windows(const Problem& problem, const DeviceInfo& device) {
  if (!problem.unit_time_stride) return Support::no("needs times next to one another");
  return supports_one_weight(problem, device);
}

/// The part of one trajectory that a block works on.
template <class Time>
struct Trajectory {
  std::int64_t b;
  int samples;
  int targets;
  const Time* stamps;
  float samples_per_target;
};

template <class Time>
__device__ __forceinline__ Trajectory<Time> trajectory(const Call& call, std::int64_t b) {
  const Timeline& line = call.line;
  Trajectory<Time> of{b, static_cast<int>(line.source_count(b)), static_cast<int>(line.target_count(b)),
                      static_cast<const Time*>(line.source.data) + line.source.first(b), call.samples_per_target};
  if (line.source_offsets || line.target_offsets)
    of.samples_per_target =
        of.targets > 1 ? static_cast<float>(of.samples - 1) / static_cast<float>(of.targets - 1) : 0.0f;
  return of;
}

/// Blocks are (tile, trajectory), the trajectory spread over y and z, which hold 65,535 each.
inline dim3 tile_grid(std::int64_t tiles, std::int64_t batch) {
  const std::int64_t y = std::min<std::int64_t>(batch, 65535);
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(y), static_cast<unsigned>((batch + y - 1) / y)};
}
__device__ __forceinline__ std::int64_t block_trajectory() {
  return static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
}

/// Samples [first, first + count).
struct Range {
  int first = 0;
  int count = 0;
};

/// The samples around targets [begin, end) if both kinds of stamps were evenly spread over the same time, and `margin`
/// more at each end; at most `capacity`.
__device__ __forceinline__ Range guess(int begin, int end, int samples, float samples_per_target, int margin,
                                       int capacity) {
  const int low = max(static_cast<int>(static_cast<float>(begin) * samples_per_target) - margin, 0);
  const int high = min(static_cast<int>(static_cast<float>(end - 1) * samples_per_target) + 2 + margin, samples);
  return {low, min(high - low, capacity)};
}

/// How far stamps stray from that guess, in samples, at about 3 standard deviations for targets drawn at random and
/// steps that vary by half: the spread of sorted uniform numbers, and of a sum of random steps. 4 bytes each, mostly L2
/// hits: generous costs little, a miss costs a search in global memory.
inline int time_margin(std::int64_t samples, std::int64_t targets) {
  const auto s = static_cast<double>(samples);
  const double spread =
      1.5 * s / std::sqrt(static_cast<double>(std::max<std::int64_t>(targets, 1))) + 0.45 * std::sqrt(s);
  return 4 + static_cast<int>(std::min(spread, 1e6));
}

/// The number of stamps at or before q among `count`: a first guess from the distance to both ends, some steps from
/// there, then a binary search. (Search alone: 5.8 us against 5.4 at 64,4096->1024,32.)
template <class Time>
__device__ __forceinline__ int count_in_window(const Time* x, int count, Time q) {
  constexpr int kSteps = 6;  // more would make clustered stamps slower than the binary search
  if (count < 1 || !(x[0] <= q)) return 0;
  if (x[count - 1] <= q) return count;
  const float ahead =
      __fdividef(static_cast<float>(difference(q, x[0])), static_cast<float>(difference(x[count - 1], x[0])));
  int i = max(min(static_cast<int>(ahead * static_cast<float>(count - 1)), count - 2), 0);
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) {
    if (x[i] > q)
      --i;
    else if (x[i + 1] <= q)
      ++i;
    else
      return i + 1;
  }
  return count_until<int>([&](int at) { return x[at]; }, 0, count, q);
}

/// The same over all samples, from the neighbourhood of a window that did not hold q: steps of 1, 2, 4, ...
template <class Time>
__device__ __noinline__ int count_outside(const Time* stamps, int samples, Range window, bool before, Time q) {
  const auto at = [&](int i) { return __ldg(stamps + i); };
  int step = 1;
  if (before) {
    int high = window.first;
    while (high - step >= 0 && !(at(high - step) <= q)) {
      high -= step;
      step *= 2;
    }
    return count_until<int>(at, max(high - step, 0), high, q);
  }
  int low = window.first + window.count;
  while (low + step <= samples && at(low + step - 1) <= q) {
    low += step;
    step *= 2;
  }
  return count_until<int>(at, low, min(low + step - 1, samples), q);
}

/// The place of q, from the window where it is in there. `samples` > 0.
template <class Time>
__device__ __forceinline__ Place<int> locate(const Call& call, const Trajectory<Time>& of, const Time* window,
                                             Range range, Time q) {
  const int inside = count_in_window(window, range.count, q);
  const bool before = inside == 0 && range.first > 0;
  const bool behind = inside == range.count && range.first + range.count < of.samples;
  const int until = before || behind ? count_outside(of.stamps, of.samples, range, before, q) : range.first + inside;
  const int i = earlier_sample(until, of.samples);
  const int later = of.samples > 1 ? i + 1 : i;
  const int local = i - range.first;
  const bool here = local >= 0 && later - range.first < range.count;
  const Time x = here ? window[local] : __ldg(of.stamps + i);
  const Time next = here ? window[later - range.first] : __ldg(of.stamps + later);
  return resolve(call.interpolation, place(call.line, of.samples, i, x, next, q));
}

/// Copies the stamps of a range to shared memory with ordinary loads, all threads of the block together; four loads are
/// in flight before the first store. Then a barrier.
template <class Time>
__device__ __forceinline__ void stage_stamps(Time* window, const Trajectory<Time>& of, Range range, int threads) {
  constexpr int kFlight = 4;
  for (int base = static_cast<int>(threadIdx.x); base < range.count; base += threads * kFlight) {
    Time loaded[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (base + k * threads < range.count) loaded[k] = __ldg(of.stamps + range.first + base + k * threads);
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (base + k * threads < range.count) window[base + k * threads] = loaded[k];
  }
}

/// Writes the mask of one target, where it is wanted.
__device__ __forceinline__ void write_valid(const Call& call, std::int64_t b, int t, float weight) {
  if (call.valid.data)
    static_cast<std::uint8_t*>(const_cast<void*>(call.valid.data))[call.valid.first(b) + t * call.valid.row_stride] =
        weight == weight;
}

}  // namespace tmaops::ops::resample::cuda
