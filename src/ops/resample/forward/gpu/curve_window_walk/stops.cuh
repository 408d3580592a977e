// Where the targets of a block that walks are, and what the walk needs to know of them. They are located from the
// timestamps alone: where the rows that were fetched on a guess are not those that are needed, exactly these are
// fetched then.
#pragma once

#include "ops/resample/forward/gpu/curve_window_walk/strand.hpp"
#include "ops/resample/forward/shared/curves.cuh"
#include "ops/resample/forward/shared/plain.cuh"

namespace tmaops::ops::resample::curve_window_walk {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// A target in shared memory. `at`: its interval, counted in the window of rows, or one of the others.
struct alignas(16) Stop {
  static constexpr int kSlow = -1;  // it is made the slow way
  static constexpr int kCopy = -2;  // and less: it is sample kCopy - at of the window, to the bit
  static constexpr int kEnd = static_cast<int>(0x80000000u);  // the strand ends here: behind each in shared memory
  int at;
  float factor[3];  // PCHIP: of the rise and of the slopes at both ends; slerp: the weight
};
inline constexpr int kWalkThreads = 128;
inline constexpr int kWalkBlocks = 8;  // per multiprocessor; 64 registers
inline constexpr int kWalkTargets = kWalkThreads / device::kWarpThreads * kStrandTargets;  // of a block
__host__ __device__ constexpr int stop_index(int target) { return target + target / kStrandTargets; }

/// The same for the slow way, by the formulas for every case.
struct alignas(16) SlowStop {
  int row;
  float weight;
  Neighbours around;
};

/// A PlainTile and what walking needs besides, in shared memory behind the window of rows.
struct WalkTile {
  PlainTile tile;
  SharedArray<Stop> stops;
  SharedArray<SlowStop> slow;
  SharedArray<float> rates;
  int shared_end;
};

/// Lengths of neighbouring intervals between which factors can neither overflow nor vanish.
__device__ __forceinline__ bool usual_ratio(float ratio) { return ratio > 0x1p-30f && ratio < 0x1p30f; }

/// What a target needs to know about the intervals beside its own, in every case. Kept out of the way.
inline __device__ __noinline__ Neighbours walk_neighbours(const float* times, int samples, int row) {
  const float x = __ldg(times + row);
  const float next = __ldg(times + row + 1);
  const float before = row > 0 ? x - __ldg(times + row - 1) : 0.0f;
  const float after = row + 2 < samples ? __ldg(times + row + 2) - next : 0.0f;
  Neighbours around;
  if (before != 0.0f) around.before = (next - x) / before;
  if (after != 0.0f) around.after = (next - x) / after;
  return around;
}

/// The samples that the targets of a warp need: none when last < first.
struct Needed {
  int first = 0x7fffffff;
  int last = -1;
};

/// Where a target is and what it needs to know about the intervals beside its own.
struct Located {
  Place<int> at;
  Neighbours around;
  bool usual;  // has what a walk asks for
};

template <class Walk>
__device__ __forceinline__ Located locate_walk(const PlainTile& tile, const PlainBlock& block,
                                               const unsigned char* shared, float q) {
  Located found{plain_place(tile, block, shared, q), {}, true};
  if constexpr (Walk::kSlopes) {
    const int row = found.at.row;
    if (fabsf(found.at.weight) > 0.0f) {
      // Four timestamps from the window at once, where it holds them; samples without a neighbour and ratios that are
      // not usual go the long way.
      const int held = row - block.time_base;
      found.usual = row > 0 && row + 2 < tile.samples && held > 0 && held + 2 < tile.time_bytes / 4;
      if (found.usual) {
        const float* timestamps = reinterpret_cast<const float*>(array_of(shared, tile.times_held)) + held;
        const float step = timestamps[1] - timestamps[0];
        found.around.before = step * device::reciprocal(timestamps[0] - timestamps[-1]);
        found.around.after = step * device::reciprocal(timestamps[2] - timestamps[1]);
        found.usual = usual_ratio(found.around.before) && usual_ratio(found.around.after);
      }
      if (!found.usual)
        found.around =
            walk_neighbours(reinterpret_cast<const float*>(tile.times) + block.b * tile.time_stride, tile.samples, row);
    }
  }
  return found;
}

/// The samples that a warp's targets need, of lanes with `some`.
template <class Walk>
__device__ __forceinline__ Needed needed_samples(const Located& found, int samples, bool some) {
  Needed needed;
  if (some) {
    const bool two = fabsf(found.at.weight) > 0.0f;
    needed.first = max(found.at.row - (two && Walk::kSlopes ? 1 : 0), 0);
    needed.last = min(found.at.row + (two ? Walk::kBehind : 0), samples - 1);
  }
  return {__reduce_min_sync(0xffffffffu, needed.first), __reduce_max_sync(0xffffffffu, needed.last)};
}

/// Leaves the stop of target t of the block; whether it is made the slow way. `rows`: the window's.
template <class Walk>
__device__ __forceinline__ bool leave_stop(const WalkTile& walk, unsigned char* shared, const Located& found,
                                           Range rows, int t) {
  const int local = found.at.row - rows.first;
  const bool two = fabsf(found.at.weight) > 0.0f;
  Stop stop{Stop::kSlow, {0, 0, 0}};
  if (two && found.usual && local >= (Walk::kSlopes ? 1 : 0) && local + Walk::kBehind < rows.count)
    stop = Walk::stop(local, found.at.weight, found.around);
  if (Walk::kSlopes && found.at.weight == 0.0f && local >= 0 && local < rows.count) stop.at = Stop::kCopy - local;
  array_of(shared, walk.stops)[stop_index(t)] = stop;
  array_of(shared, walk.slow)[t] = {found.at.row, found.at.weight, found.around};
  return stop.at == Stop::kSlow;
}

/// Leaves the rate of sample `row` of the window, 0 where its neighbours' timestamps are not held.
template <class Walk>
__device__ __forceinline__ void locate_rate(const WalkTile& walk, const PlainBlock& block, unsigned char* shared,
                                            int first_row, int row) {
  const PlainTile& tile = walk.tile;
  const auto* window = reinterpret_cast<const float*>(array_of(shared, tile.times_held));
  const int held = first_row + row - block.time_base;
  float rate = 0;
  if (held >= 1 && held + 1 < tile.time_bytes / 4)
    rate = Walk::rate(window[held] - window[held - 1], window[held + 1] - window[held]);
  array_of(shared, walk.rates)[row] = rate;
}

}  // namespace tmaops::ops::resample::curve_window_walk
