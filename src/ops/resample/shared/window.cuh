// Which window of a trajectory's samples a tile of targets probably needs: guessed from where the targets stand in
// theirs. Any window gives the same result; what it does not hold is read from global memory.
#pragma once

#include "device/vector.cuh"
#include "ops/resample/shared/call.cuh"
#include "ops/resample/shared/timeline.cuh"

namespace tmaops::ops::resample::gpu {

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
/// Target t of a trajectory.
template <class Time>
__device__ __forceinline__ Time target_time(const Call& call, std::int64_t b, int t) {
  return target_time<Time>(call.line, b, t);
}
/// The trajectory of a block, whose grid is tile_grid()'s.
__device__ __forceinline__ std::int64_t block_trajectory() {
  return static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
}

/// The sample beside a target, if both are evenly spread.
__device__ __forceinline__ int sample_beside(const Pace& pace, int target) {
  return static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(target)) * pace.ratio) >> pace.shift);
}

/// `capacity` samples, or all, from `margin` before the place of target `begin` on.
__device__ __forceinline__ Range guess(Pace pace, int begin, int samples, int margin, int capacity) {
  const int place = sample_beside(pace, begin);
  const int count = min(capacity, samples);
  return {max(min(place - margin, samples - count), 0), count};
}

/// Copies the stamps of a range to shared memory with ordinary loads, all threads of the block together; four loads are
/// in flight before the first store. The caller synchronises.
template <class Time>
__device__ __forceinline__ void stage_times(Time* window, const Trajectory<Time>& of, Range range, int threads) {
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
class TimeLoad {
 public:
  __device__ __forceinline__ TimeLoad(const unsigned char* from, int bytes)
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

}  // namespace tmaops::ops::resample::gpu
