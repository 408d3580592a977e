// The search by all lanes of a warp together: 32 probes narrow it by a factor of 33 per round trip.
#pragma once

#include "device/warp.cuh"

namespace tmaops::ops::resample::gpu {

/// The number of indices below `count` that passed(index) holds for, if it holds for none behind one that it does not
/// hold for: by all lanes of a warp together.
template <class Index, class Passed>
__device__ __forceinline__ Index count_by_warp(Index count, const Passed& passed) {
  const int lane = device::lane_index();
  Index low = 0;
  Index high = count;
  while (low < high) {
    const Index step = (high - low + device::kWarpThreads) / (device::kWarpThreads + 1);
    const Index probe = low + (lane + 1) * step - 1;
    low += __popc(__ballot_sync(0xffffffffu, probe < high && passed(probe))) * step;
    high = min(low + step - 1, high);
  }
  return low;
}

}  // namespace tmaops::ops::resample::gpu
