// All timestamps of a trajectory in shared memory, and the published search in them by one lane of a warp.
#pragma once

#include "device/shared_memory.cuh"
#include "device/warp.cuh"
#include "ops/resample/shared/window.cuh"
#include "study/resample/shared/held_times.hpp"

namespace tmaops::ops::resample::gpu {

struct HeldTimes {
  alignas(16) unsigned char bytes[kHeldTimeBytes];  // the launch asks for what the timestamps need
};

inline int held_time_bytes(const Problem& problem) {
  return static_cast<int>(problem.longest_source * static_cast<std::int64_t>(size_of(problem.times)));
}

/// Fills `to`, all threads of the block together, which then synchronise.
template <class Time>
__device__ __forceinline__ void hold_times(Time* to, const Call& call, const Trajectory<Time>& of) {
  for (int i = static_cast<int>(threadIdx.x); i < of.samples; i += static_cast<int>(blockDim.x))
    to[i] = device::load_now(of.timestamps + i * call.line.source.row_stride);
  __syncthreads();
}

/// Where q lies. Lane 0 alone reads `times`: it broadcasts the outcome of every step of the search, then the place.
template <class Time>
__device__ __forceinline__ Place<int> place_by_first_lane(const Call& call, int samples, const Time* times, Time q) {
  constexpr unsigned kAll = 0xffffffffu;
  if (samples == 0) return {0, missing()};
  const bool first_lane = device::lane_index() == 0;
  int low = 0;
  int high = max(samples - 2, 0);
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (__shfl_sync(kAll, first_lane && times[middle] <= q ? 1 : 0, 0) != 0)
      low = middle;
    else
      high = middle - 1;
  }
  Place<int> at{};
  if (first_lane)
    at = resolve(call.interpolation, place(call.line, samples, low, times[low], times[min(low + 1, samples - 1)], q));
  return {__shfl_sync(kAll, at.row, 0), __shfl_sync(kAll, at.weight, 0)};
}

}  // namespace tmaops::ops::resample::gpu
