// Which window of a trajectory's samples a tile of targets probably needs: guessed from where the targets stand in
// theirs. Any window gives the same result; what it does not hold is read from global memory.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/registry.hpp"
#include "ops/resample/cuda/call.cuh"
#include "ops/resample/cuda/plain.cuh"
#include "ops/resample/cuda/timeline.cuh"

namespace tmaops::ops::resample::cuda {

/// What all variants with 32-bit row numbers take.
inline Support supports_rows(const Problem& problem) {
  if (!problem.unit_channel_stride) return Support::no("needs channels next to one another");
  if (problem.channels == 0) return Support::no("needs at least one channel");
  constexpr std::int64_t most = 1 << 30;
  if (problem.source > most || problem.target > most) return Support::no("needs at most 2^30 samples and targets");
  return Support::yes();
}

/// The same for those with one weight per target.
inline Support supports_one_weight(const Problem& problem) {
  if (problem.groups.size() > 1) return Support::no("needs one interpolation for all channels");
  for (const ChannelGroup& group : problem.groups)
    if (group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp)
      return Support::no("needs linear, previous, next or nearest interpolation");
  return supports_rows(problem);
}

/// The same for those that copy windows of stamps.
inline Support supports_windows(const Problem& problem) {
  if (!problem.unit_time_stride) return Support::no("needs times next to one another");
  return supports_one_weight(problem);
}

/// The part of one trajectory that a block works on.
template <class Time>
struct Trajectory {
  std::int64_t b;
  int samples;
  int targets;
  const Time* stamps;
  Pace pace;
};

template <class Time>
__device__ __forceinline__ Trajectory<Time> trajectory(const Call& call, std::int64_t b) {
  const Timeline& line = call.line;
  Trajectory<Time> of{b, static_cast<int>(line.source_count(b)), static_cast<int>(line.target_count(b)),
                      static_cast<const Time*>(line.source.data) + line.source.first(b), call.pace};
  if (line.source_offsets || line.target_offsets) of.pace = pace_of(of.samples, of.targets);
  return of;
}
template <class Time>
__device__ __forceinline__ Trajectory<Time> trajectory(const PlainCall& call, std::int64_t b) {
  return {b, call.samples, call.target_count, reinterpret_cast<const Time*>(call.stamps + b * call.stamp_stride),
          call.pace};
}

/// Target t of a trajectory.
template <class Time>
__device__ __forceinline__ Time target_time(const Call& call, std::int64_t b, int t) {
  return target_time<Time>(call.line, b, t);
}
template <class Time>
__device__ __forceinline__ Time target_time(const PlainCall& call, std::int64_t b, int t) {
  return device::load_now(reinterpret_cast<const Time*>(call.targets + b * call.target_stride) + t);
}

/// Blocks are (tile, trajectory), the trajectory spread over y and z, which hold 65,535 each.
inline dim3 tile_grid(std::int64_t tiles, std::int64_t batch) {
  const std::int64_t y = std::min<std::int64_t>(batch, kMostPlainBatch);
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(y), static_cast<unsigned>((batch + y - 1) / y)};
}
__device__ __forceinline__ std::int64_t block_trajectory(const Call&) {
  return static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
}
__device__ __forceinline__ std::int64_t block_trajectory(const PlainCall&) { return blockIdx.y; }
__device__ __forceinline__ std::int64_t batch_of(const Call& call) { return call.line.batch; }
__device__ __forceinline__ std::int64_t batch_of(const PlainCall& call) { return call.batch; }

/// Samples [first, first + count).
struct Range {
  int first = 0;
  int count = 0;
};

/// `capacity` samples, or all, from `margin` before the place of target `begin` on.
__device__ __forceinline__ Range guess(Pace pace, int begin, int samples, int margin, int capacity) {
  const int place =
      static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(begin)) * pace.ratio) >> pace.shift);
  const int count = min(capacity, samples);
  return {max(min(place - margin, samples - count), 0), count};
}

/// How many samples a tile spans, with margins at both ends, at most `most`.
inline int window_capacity(const Problem& problem, std::int64_t longest_target, int tile, int margin,
                           std::int64_t most) {
  const double spanned = std::ceil(static_cast<double>(tile) * static_cast<double>(problem.longest_source) /
                                   static_cast<double>(longest_target));
  const double wanted = spanned + 3 + 2.0 * margin;
  return static_cast<int>(std::min<double>(wanted, static_cast<double>(std::min(most, problem.longest_source))));
}

/// How far stamps stray from the guess, in samples, at about 3 standard deviations for targets drawn at random and
/// steps that vary by half: the spread of sorted uniform numbers, and of a sum of random steps. 4 bytes each, mostly L2
/// hits: generous costs little, a miss costs a search in global memory.
inline int time_margin(std::int64_t samples, std::int64_t targets) {
  const auto s = static_cast<double>(samples);
  const double spread =
      1.5 * s / std::sqrt(static_cast<double>(std::max<std::int64_t>(targets, 1))) + 0.45 * std::sqrt(s);
  return 4 + static_cast<int>(std::min(spread, 1e6));
}

/// Copies the stamps of a range to shared memory with ordinary loads, all threads of the block together; four loads are
/// in flight before the first store. The caller synchronises.
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

/// Whole units of 16 bytes on their way from global to shared memory by ordinary loads, all `threads` of the block
/// together: the first of each thread is loaded at once, and stored when what else the thread has to load is under way,
/// too. The caller synchronises behind store().
template <int threads>
class StampLoad {
 public:
  __device__ __forceinline__ StampLoad(const unsigned char* from, int bytes)
      : from_(reinterpret_cast<const uint4*>(from)), units_(bytes / 16) {
    if (static_cast<int>(threadIdx.x) < units_) first_ = device::load_now(from_ + threadIdx.x);
  }
  __device__ __forceinline__ void store(unsigned char* to) const {
    auto* units = reinterpret_cast<uint4*>(to);
    auto i = static_cast<int>(threadIdx.x);
    if (i < units_) units[i] = first_;
#pragma unroll 1
    for (i += threads; i < units_; i += threads) units[i] = device::load_now(from_ + i);
  }

 private:
  const uint4* from_;
  int units_;
  uint4 first_{};
};

/// Writes the mask of one target, where it is wanted.
__device__ __forceinline__ void write_valid(const Call& call, std::int64_t b, int t, float weight) {
  if (call.valid.data)
    static_cast<std::uint8_t*>(const_cast<void*>(call.valid.data))[call.valid.first(b) + t * call.valid.row_stride] =
        weight == weight;
}
__device__ __forceinline__ void write_valid(const PlainCall&, std::int64_t, int, float) {}

}  // namespace tmaops::ops::resample::cuda
