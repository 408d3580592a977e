// Output rows from a window of rows in shared memory: 16-byte chunks, dealt out to the lanes in the order of the
// output. What the window does not hold is read from global memory.
#pragma once

#include "ops/resample/forward/shared/touched_rows.cuh"
#include "ops/resample/shared/bracket.cuh"

namespace tmaops::ops::resample::gpu {

/// Rows `range` of a trajectory in shared memory, and the same rows in global memory.
struct Window {
  const unsigned char* held;
  Range range;
  RowBytes rows;
  bool samples;  // whether the trajectory has any

  /// Whether the rows a place needs are held.
  __device__ __forceinline__ bool holds(const Place<int>& at) const {
    const int local = at.row - range.first;
    return local >= 0 && local + (fabsf(at.weight) > 0.0f ? 1 : 0) < range.count;
  }
};

/// The target of a lane, counted in its block: each warp has `targets_per_warp` of them, one per lane.
__device__ __forceinline__ int target_of_lane(int targets_per_warp) {
  return device::warp_index() * targets_per_warp + device::lane_index();
}

/// Writes the rows of a warp's targets. `at`: where the lane's own target `t` lies, if it is `active`.
template <class Value>
__device__ __forceinline__ void write_window_rows(const Chunks& chunks, const Window& window, const Place<int>& at,
                                                  int t, bool active) {
  constexpr int kFlight = 4;
  const int lane = device::lane_index();
  const int count = __popc(__ballot_sync(0xffffffffu, active));
  const int first = t - lane;
  if (!__all_sync(0xffffffffu, !active || window.holds(at))) {
    write_touched_rows<Value, 2>(window.rows, chunks, at, first, count, window.samples);
    return;
  }
  const int stride = chunks.count * 16;
  const int items = count * chunks.count;
  const int first_row = (at.row - window.range.first) * stride;
  const int second_row = first_row + (fabsf(at.weight) > 0.0f ? stride : 0);
  unsigned char* output = window.rows.output + static_cast<std::int64_t>(first) * stride;
#pragma unroll kFlight
  for (int base = 0; base < items; base += device::kWarpThreads) {
    const int item = base + lane;
    const int target = row_of(chunks, item);
    const int column = (item - target * chunks.count) * 16;
    const int from = __shfl_sync(0xffffffffu, first_row, target) + column;
    const int second = __shfl_sync(0xffffffffu, second_row, target) + column;
    const float weight = __shfl_sync(0xffffffffu, at.weight, target);
    if (item < items)
      device::store_16_streaming(output + item * 16,
                                 mix_16<Value>(*reinterpret_cast<const uint4*>(window.held + from),
                                               *reinterpret_cast<const uint4*>(window.held + second), weight));
  }
}

}  // namespace tmaops::ops::resample::gpu
