// Output rows of 16-byte chunks, written by a warp for the targets its lanes have located: only the rows needed are
// read.
#pragma once

#include "ops/resample/shared/rows.cuh"

namespace tmaops::ops::resample::gpu {

/// Writes output rows [first, first + targets) of a trajectory, whose places are in lanes 0 to targets - 1. Loads only
/// the rows needed; `flight` pairs of loads per lane are under way before the first is used. `samples`: whether the
/// trajectory has any.
template <class Value, int flight>
__device__ __forceinline__ void write_touched_rows(const RowBytes& rows, const Chunks& chunks, const Place<int>& at,
                                                   int first, int targets, bool samples) {
  const int lane = device::lane_index();
  const int items = targets * chunks.count;
  for (int base = 0; base < items; base += device::kWarpThreads * flight) {
    uint4 a[flight];
    uint4 b[flight];
    float weight[flight];
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const int item = base + k * device::kWarpThreads + lane;
      const int target = row_of(chunks, item);
      const int row = __shfl_sync(0xffffffffu, at.row, target);
      weight[k] = __shfl_sync(0xffffffffu, at.weight, target);
      a[k] = b[k] = uint4{};
      if (item < items && samples) {
        const unsigned char* from = rows.values + row * rows.value_stride + (item - target * chunks.count) * 16;
        a[k] = device::load_16(from);
        b[k] = device::load_16(from + (fabsf(weight[k]) > 0.0f ? rows.value_stride : 0));  // not of a missing target
      }
    }
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const int item = base + k * device::kWarpThreads + lane;
      const int target = row_of(chunks, item);
      if (item < items)
        device::store_16_streaming(
            rows.output + (first + target) * rows.output_stride + (item - target * chunks.count) * 16,
            mix_16<Value>(a[k], b[k], weight[k]));
    }
  }
}

}  // namespace tmaops::ops::resample::gpu
