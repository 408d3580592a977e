// From places to output rows, for rows of 16-byte chunks that lie in shared memory: three ways to divide a warp's
// targets among its lanes. What the window does not hold is read from global memory.
#pragma once

#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"

namespace tmaops::ops::resample::cuda {

/// A tile of targets and the windows it needs, fixed on the host.
struct Tile {
  Chunks chunks;
  int targets;           // per block
  int targets_per_warp;  // at most 32
  int lane_shift;        // log2 of the lanes that share a target (Own)
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

/// Reads one row, or two `second` bytes apart, in `chunks` steps of `step` bytes. Rare: kept out of the way, and all
/// arguments by value, since what goes by reference is stored to local memory in front of the branch (A: 136 us for 70).
template <class Value>
__device__ __noinline__ void write_from_memory(const unsigned char* from, std::int64_t second, float weight,
                                               unsigned char* to, int step, int chunks) {
  const bool is_missing = weight != weight;  // there may be no row at all
  for (int k = 0; k < chunks; ++k, from += step, to += step) {
    const uint4 a = is_missing ? uint4{} : device::load_16(from);
    const uint4 b = fabsf(weight) > 0.0f ? device::load_16(from + second) : a;
    device::store_16_streaming(to, mix_16<Value>(a, b, weight));
  }
}

/// Every lane locates the target whose chunks it combines, `chunks` of them: lanes of one target repeat its search in
/// step, and nothing is passed between lanes. Best for one to four chunks per lane.
template <int chunks>
struct Own {
  static constexpr bool kPrefetch = false;
  static constexpr bool kLaneTargets = false;  // lanes share targets

  static __device__ __forceinline__ int target_in_block(const Tile& tile) {
    return static_cast<int>(threadIdx.x) >> tile.lane_shift;
  }
  static __device__ __forceinline__ bool writes_mask(const Tile& tile) {
    return (threadIdx.x & ((1u << tile.lane_shift) - 1)) == 0;
  }
  template <class Value>
  static __device__ __forceinline__ void combine(const Tile& tile, const Window& window, const Place<int>& at, int t,
                                                 bool active) {
    if (!active) return;
    const int lanes = 1 << tile.lane_shift;
    const int column = (static_cast<int>(threadIdx.x) & (lanes - 1)) * 16;
    const int step = lanes * 16;
    const int stride = tile.chunks.count * 16;
    unsigned char* to = window.rows.output + static_cast<std::int64_t>(t) * stride + column;
    if (!window.holds(at)) {
      write_from_memory<Value>(window.rows.values + static_cast<std::int64_t>(at.row) * stride + column, stride,
                               at.weight, to, step, chunks);
      return;
    }
    const unsigned char* from = window.held + (at.row - window.range.first) * stride + column;
    const unsigned char* second = from + (fabsf(at.weight) > 0.0f ? stride : 0);
    uint4 a[chunks];
    uint4 b[chunks];
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      a[k] = *reinterpret_cast<const uint4*>(from + k * step);
      b[k] = *reinterpret_cast<const uint4*>(second + k * step);
    }
#pragma unroll
    for (int k = 0; k < chunks; ++k) device::store_16_streaming(to + k * step, mix_16<Value>(a[k], b[k], at.weight));
  }
};

/// Every lane locates one target of its warp; the chunks of all are dealt out in the order of the output.
struct Dealt {
  static constexpr bool kPrefetch = false;
  static constexpr bool kLaneTargets = true;

  static __device__ __forceinline__ int target_in_block(const Tile& tile) {
    return device::warp_index() * tile.targets_per_warp + device::lane_index();
  }
  static __device__ __forceinline__ bool writes_mask(const Tile&) { return true; }
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

/// As Dealt, but a lane keeps its column and walks along the targets: neighbouring targets between the same two samples
/// share what was read. For rows of a multiple of 512 bytes and many targets per sample.
struct Walk : Dealt {
  static constexpr bool kPrefetch = true;  // of all values, see bulk_window

  template <class Value>
  static __device__ __forceinline__ void combine(const Tile& tile, const Window& window, const Place<int>& at, int t,
                                                 bool active) {
    const int lane = device::lane_index();
    const int count = __popc(__ballot_sync(0xffffffffu, active));
    const int first = t - lane;
    if (!__all_sync(0xffffffffu, !active || window.holds(at))) {
      write_touched_rows<Value, 2>(window.rows, tile.chunks, at, first, count, window.samples);
      return;
    }
    const int stride = tile.chunks.count * 16;
    const int first_row = (at.row - window.range.first) * stride;
    const int second_row = first_row + (fabsf(at.weight) > 0.0f ? stride : 0);
    for (int column = lane * 16; column < stride; column += device::kWarpThreads * 16) {
      unsigned char* to = window.rows.output + static_cast<std::int64_t>(first) * stride + column;
      int loaded = -1;
      int loaded_second = -1;
      Unpacked<Value> a;
      Unpacked<Value> rise;
      uint4 raw{};
      for (int k = 0; k < count; ++k, to += stride) {
        const int from = __shfl_sync(0xffffffffu, first_row, k);
        const int second = __shfl_sync(0xffffffffu, second_row, k);
        const float weight = __shfl_sync(0xffffffffu, at.weight, k);
        if (from != loaded || second != loaded_second) {
          raw = *reinterpret_cast<const uint4*>(window.held + from + column);
          a = unpack<Value>(raw);
          rise = unpack<Value>(*reinterpret_cast<const uint4*>(window.held + second + column));
#pragma unroll
          for (int i = 0; i < Unpacked<Value>::count; ++i) rise.at[i] -= a.at[i];
          loaded = from;
          loaded_second = second;
        }
        Unpacked<Value> mixed;
#pragma unroll
        for (int i = 0; i < Unpacked<Value>::count; ++i) mixed.at[i] = fmaf(weight, rise.at[i], a.at[i]);
        device::store_16_streaming(to, weight == 0.0f ? raw : pack(mixed));
      }
    }
  }
};

}  // namespace tmaops::ops::resample::cuda
