// A block's tile of a plain call: what it copies, where its targets lie, and how rows are made of them. One thread's
// chain of instructions from the first one to the copies delays every short call, and what every warp repeats delays
// long ones: setup is kept short.
#pragma once

#include <iterator>

#include "device/bulk_copy.cuh"
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/plain.hpp"
#include "ops/resample/shared/bracket.cuh"
#include "ops/resample/shared/rows.cuh"

namespace tmaops::ops::resample::gpu {

/// The second number of __launch_bounds__: `wanted` blocks per multiprocessor, or those whose threads it holds.
constexpr int resident_blocks(int threads, int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
  constexpr int most = 1536;
#else
  constexpr int most = 2048;
#endif
  return wanted * threads > most ? most / threads : wanted;
}

/// A block's trajectory, targets and windows.
struct PlainBlock {
  int b;
  int begin;       // first target
  int targets;     // of this tile
  int time_unit;   // where the window of times begins, in chunks of the whole tensor
  int time_base;   // the sample there; below 0 in another trajectory
  int first_row;   // of the window of rows
  int width;       // bytes of a row

  /// Units from the start of the values, or of the output, to a row.
  __device__ __forceinline__ int value_unit(const PlainTile& tile, int row) const {
    return b * tile.value_stride + row * tile.chunks.count;
  }
  __device__ __forceinline__ unsigned char* output(const PlainTile& tile, int target) const {
    const int unit = b * tile.output_stride + (begin + target) * tile.chunks.count;
    return tile.output + static_cast<std::int64_t>(unit) * 16;
  }
};

template <class Time>
__device__ __forceinline__ PlainBlock plain_block(const PlainTile& tile) {
  constexpr int per_unit = 16 / static_cast<int>(sizeof(Time));
  PlainBlock block;
  block.b = static_cast<int>(blockIdx.y);
  block.begin = static_cast<int>(blockIdx.x) * tile.tile;
  block.targets = min(tile.tile, tile.target_count - block.begin);
  const int place = sample_beside(tile.pace, block.begin);
  const int zero = block.b * tile.time_stride;
  const int first = zero + max(min(place - tile.time_margin, tile.time_limit), 0);
  block.time_unit = min(static_cast<int>(static_cast<unsigned>(first) / per_unit), tile.time_unit_limit);
  block.time_base = block.time_unit * per_unit - zero;
  block.first_row = max(min(place - tile.row_margin, tile.row_limit), 0);
  block.width = tile.chunks.count * 16;
  return block;
}

/// Fetches the block's share; one thread.
__device__ __forceinline__ void fetch_share(const Ahead& ahead, device::CacheHint hint) {
  const std::uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
  const std::uint32_t from = block * ahead.share;
  if (block < kAheadBlocks && from < ahead.units)
    device::bulk_prefetch(ahead.from + static_cast<std::int64_t>(from) * 16, min(ahead.share, ahead.units - from) * 16,
                          hint);
}

/// Brings the stamps, the target times and the first values into the L2. Called in front of wait_for_previous_kernel():
/// with a dependent launch it happens while the kernel in front comes to its end. That may still have to write these
/// bytes: a prefetch returns none of them, and the L2 is where writes and later reads meet. Three threads of the second
/// warp, which has time.
__device__ __forceinline__ void fetch_ahead(const PlainTile& tile) {
  const std::uint32_t which = threadIdx.x - device::kWarpThreads;
  if (which < std::size(tile.ahead)) fetch_share(tile.ahead[which], device::CacheHint::evict_normal);
}

/// Issues the copy of the stamps; one thread. The tensor's end behind its last multiple of 16 bytes is not copied, and
/// read from global memory where it is needed.
__device__ __forceinline__ void fetch_times(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                            device::Barrier& ready) {
  device::arrive_expect_bytes(ready, static_cast<std::uint32_t>(tile.time_bytes));
  device::bulk_load(shared + tile.times_at, tile.times + static_cast<std::int64_t>(block.time_unit) * 16,
                    static_cast<std::uint32_t>(tile.time_bytes), ready);
}

/// Issues the copy of these rows; one thread.
__device__ __forceinline__ void fetch_rows(const PlainTile& tile, const PlainBlock& block, Range rows,
                                           unsigned char* shared, device::Barrier& ready) {
  const auto bytes = static_cast<std::uint32_t>(rows.count * block.width);
  device::arrive_expect_bytes(ready, bytes);
  const std::int64_t unit = block.value_unit(tile, rows.first);
  device::bulk_load(shared + tile.rows_at, tile.values + unit * 16, bytes, ready);
}

template <class Time>
__device__ __forceinline__ Time plain_target(const PlainTile& tile, const PlainBlock& block, int target) {
  return device::load_now(reinterpret_cast<const Time*>(tile.targets) + block.b * tile.target_stride + block.begin +
                          target);
}

/// The place of q, from the block's window of stamps.
template <class Time>
__device__ __forceinline__ Place<int> plain_place(const PlainTile& tile, const PlainBlock& block,
                                                  const unsigned char* shared, Time q) {
  const int first = max(block.time_base, 0);
  const int end = min(block.time_base + tile.time_bytes / static_cast<int>(sizeof(Time)), tile.samples);
  const auto* window = reinterpret_cast<const Time*>(shared + tile.times_at) + (first - block.time_base);
  const auto* times = reinterpret_cast<const Time*>(tile.times) + block.b * tile.time_stride;
  return place_in(tile.interpolation, find_interval(times, tile.samples, window, Range{first, end - first}, q), q);
}

/// Whether the window of rows holds what a place needs.
__device__ __forceinline__ bool holds(const PlainTile& tile, int first_row, const Place<int>& at) {
  const int local = at.row - first_row;
  return local >= 0 && local + (at.weight != 0.0f ? 1 : 0) < tile.row_capacity;
}

/// Leaves the place of target t in shared memory.
template <Rows16 rows, class Time>
__device__ __forceinline__ void locate_target(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                              Time q, int t) {
  const Place<int> at = plain_place(tile, block, shared, q);
  Spot spot{at.row, at.weight};
  if (rows == Rows16::in_shared)
    spot.at = holds(tile, block.first_row, at) ? (at.row - block.first_row) * block.width : ~at.row;
  reinterpret_cast<Spot*>(shared)[t] = spot;
}

/// How many warps locate_targets() keeps busy: so often it arrives at `placed`.
__host__ __device__ constexpr int searching_warps(int targets, int threads) {
  return ((targets < threads ? targets : threads) + device::kWarpThreads - 1) / device::kWarpThreads;
}

/// The first warps locate the targets of the tile, one per lane; `q` is the thread's first target time.
template <Rows16 rows, class Time>
__device__ __forceinline__ void locate_targets(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                               Time q, device::Barrier& times_ready, device::Barrier& placed) {
  const auto threads = static_cast<int>(blockDim.x);
  if (static_cast<int>(threadIdx.x) / device::kWarpThreads >= searching_warps(tile.tile, threads)) return;
  device::wait(times_ready, 0);
  for (auto t = static_cast<int>(threadIdx.x); t < block.targets;) {
    locate_target<rows>(tile, block, shared, q, t);
    t += threads;
    if (t < block.targets) q = plain_target<Time>(tile, block, t);
  }
  __syncwarp();
  if (device::lane_index() == 0) device::arrive(placed);
}

/// Makes the tile's rows, the block's threads side by side along its targets: `items` chunks per thread at a time, all
/// loaded before the first is used.
template <class Value, int items, Rows16 rows>
__device__ __forceinline__ void combine_spots(const PlainTile& tile, const PlainBlock& block, unsigned char* shared) {
  constexpr bool window = rows == Rows16::in_shared;
  const auto thread = static_cast<int>(threadIdx.x);
  const int first = row_of(tile.chunks, thread);
  const int column = (thread - first * tile.chunks.count) * 16;
  const int end = first < tile.step ? block.targets : 0;  // the block need not be a multiple of a row
  const auto* spots = reinterpret_cast<const Spot*>(shared);
  const unsigned char* held = shared + tile.rows_at + column;
  const unsigned char* values = tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16 + column;
  unsigned char* output = block.output(tile, 0) + column;
#pragma unroll 1
  for (int base = first; base < end; base += items * tile.step) {
    uint4 a[items];
    uint4 b[items];
    float weight[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int t = base + k * tile.step;
      if (t >= end) break;
      const Spot spot = spots[t];
      weight[k] = spot.weight;
      const int second = fabsf(spot.weight) > 0.0f ? block.width : 0;  // not of a missing target
      if (window && spot.at >= 0) {
        a[k] = *reinterpret_cast<const uint4*>(held + spot.at);
        b[k] = *reinterpret_cast<const uint4*>(held + spot.at + second);
      } else {
        const unsigned char* from = values + static_cast<std::int64_t>(window ? ~spot.at : spot.at) * block.width;
        a[k] = device::load_16(from);
        b[k] = device::load_16(from + second);
      }
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int t = base + k * tile.step;
      if (t >= end) break;
      device::store_16_streaming(output + static_cast<std::int64_t>(t) * block.width,
                                 mix_16<Value>(a[k], b[k], weight[k]));
    }
  }
}

}  // namespace tmaops::ops::resample::gpu
