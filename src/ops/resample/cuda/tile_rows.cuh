// From places to output rows, for rows of 16-byte chunks that lie in shared memory. What the window does not hold is
// read from global memory.
#pragma once

#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"

namespace tmaops::ops::resample::cuda {

/// A tile of targets and the windows it needs, fixed on the host.
struct Tile {
  Chunks chunks;
  int targets;           // per block
  int targets_per_warp;  // at most 32
  int time_margin, row_margin;
  int stamp_capacity, row_capacity;  // samples
  int stamp_bytes;                   // of the largest copy
  int rows_at;                       // offset of the rows behind the stamps
};

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

/// Every lane locates one target of its warp; the chunks of all are dealt out in the order of the output.
struct Dealt {
  static __device__ __forceinline__ int target_in_block(const Tile& tile) {
    return device::warp_index() * tile.targets_per_warp + device::lane_index();
  }
  template <class Value>
  static __device__ __forceinline__ void combine(const Tile& tile, const Window& window, const Place<int>& at, int t,
                                                 bool active) {
    constexpr int kFlight = 4;
    const int lane = device::lane_index();
    const int count = __popc(__ballot_sync(0xffffffffu, active));
    const int first = t - lane;
    if (!__all_sync(0xffffffffu, !active || window.holds(at))) {
      write_touched_rows<Value, 2>(window.rows, tile.chunks, at, first, count, window.samples);
      return;
    }
    const int stride = tile.chunks.count * 16;
    const int items = count * tile.chunks.count;
    const int first_row = (at.row - window.range.first) * stride;
    const int second_row = first_row + (fabsf(at.weight) > 0.0f ? stride : 0);
    unsigned char* output = window.rows.output + static_cast<std::int64_t>(first) * stride;
#pragma unroll kFlight
    for (int base = 0; base < items; base += device::kWarpThreads) {
      const int item = base + lane;
      const int target = tile.chunks.row_of(item);
      const int column = (item - target * tile.chunks.count) * 16;
      const int from = __shfl_sync(0xffffffffu, first_row, target) + column;
      const int second = __shfl_sync(0xffffffffu, second_row, target) + column;
      const float weight = __shfl_sync(0xffffffffu, at.weight, target);
      if (item < items)
        device::store_16_streaming(output + item * 16,
                                   mix_16<Value>(*reinterpret_cast<const uint4*>(window.held + from),
                                                 *reinterpret_cast<const uint4*>(window.held + second), weight));
    }
  }
};

}  // namespace tmaops::ops::resample::cuda
