// Which window of a trajectory's samples a tile of targets probably needs: guessed from where the targets stand in
// theirs. Any window gives the same result; what it does not hold is read from global memory.
#pragma once

#include "device/barrier.cuh"
#include "device/vector.cuh"
#include "ops/resample/shared/call.cuh"
#include "ops/resample/shared/timeline.cuh"

namespace tmaops::ops::resample::gpu {

/// The part of one trajectory that a block works on.
template <class Time>
struct Trajectory {
  int samples;
  int targets;
  const Time* timestamps;
  Pace pace;
};

template <class Time>
__device__ __forceinline__ Trajectory<Time> trajectory(const Call& call, std::int64_t b) {
  const Timeline& line = call.line;
  Trajectory<Time> of{static_cast<int>(line.source_count(b)), static_cast<int>(line.target_count(b)),
                      line.source.at<const Time>(b), call.pace};
  if (line.source_offsets || line.target_offsets) of.pace = pace_of(of.samples, of.targets);
  return of;
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

/// Makes the barriers of the copies of two windows, of times and of rows; one thread, before the block synchronises.
template <class Storage>
__device__ __forceinline__ void init_barriers(Storage& shared) {
  device::init_barrier(shared.times_ready, 1);
  device::init_barrier(shared.rows_ready, 1);
  device::fence_barrier_init();
}

/// Writes the mask of one target, where it is wanted.
__device__ __forceinline__ void write_valid(const Call& call, std::int64_t b, int t, float weight) {
  if (call.valid.data) *call.valid.at<std::uint8_t>(b, t) = weight == weight;
}

}  // namespace tmaops::ops::resample::gpu
