// A block's tile of a plain call: what it copies, where its targets lie, and how rows are made of them. One thread's
// chain of instructions from the first one to the copies delays every short call, and what every warp repeats delays
// long ones: setup is kept short.
#pragma once

#include <iterator>

#include "device/architecture.cuh"
#include "device/bulk_copy.cuh"
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/plain.hpp"
#include "ops/resample/forward/shared/plain_place.cuh"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"

namespace tmaops::ops::resample::gpu {

/// Shared memory of a block with windows of times and rows; the launch asks for what the tile needs.
struct Windows {
  device::Barrier times_ready;
  device::Barrier rows_ready;                   // also says that targets are located, where some warps locate them
  alignas(128) unsigned char bytes[96 * 1024];  // spots, times, rows
};

/// A block's trajectory, targets and windows.
struct PlainBlock {
  int b;
  int begin;      // first target
  int targets;    // of this tile
  int time_unit;  // where the window of times begins, in chunks of the whole tensor
  int time_base;  // the sample there; below 0 in another trajectory
  int first_row;  // of the window of rows
  int width;      // bytes of a row

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

/// Blocks behind these fetch nothing: where their share begins may not fit in 32 bits. No Hopper has more than 132
/// multiprocessors, no other GPU more than 256.
inline constexpr std::uint32_t kMostAheadBlocks = kAheadBlocksEach * (device::kOnHopper ? 132 : 256);

/// Fetches the block's share; one thread.
__device__ __forceinline__ void fetch_share(const Ahead& ahead, device::CacheHint hint) {
  const std::uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
  const std::uint32_t from = block * ahead.share;
  if (block < kMostAheadBlocks && from < ahead.units)
    device::bulk_prefetch(ahead.from + static_cast<std::int64_t>(from) * 16, min(ahead.share, ahead.units - from) * 16,
                          hint);
}

/// Brings the timestamps, the target times and the first values into the L2. Called in front of
/// wait_for_previous_kernel(): with a dependent launch it happens while the kernel in front comes to its end. That may
/// still have to write these bytes: a prefetch returns none of them, and the L2 is where writes and later reads meet.
/// Three threads of the second warp, which has time.
__device__ __forceinline__ void fetch_ahead(const PlainTile& tile) {
  const std::uint32_t which = threadIdx.x - device::kWarpThreads;
  if (which < std::size(tile.ahead)) fetch_share(tile.ahead[which], device::CacheHint::evict_normal);
}

/// Issues the copy of the timestamps; one thread. The tensor's end behind its last multiple of 16 bytes is not copied,
/// and read from global memory where it is needed.
__device__ __forceinline__ void fetch_times(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                            device::Barrier& ready) {
  device::arrive_expect_bytes(ready, static_cast<std::uint32_t>(tile.time_bytes));
  device::bulk_load(array_of(shared, tile.times_held), tile.times + static_cast<std::int64_t>(block.time_unit) * 16,
                    static_cast<std::uint32_t>(tile.time_bytes), ready);
}

/// Issues the copy of these rows; one thread.
__device__ __forceinline__ void fetch_rows(const PlainTile& tile, const PlainBlock& block, Range rows,
                                           unsigned char* shared, device::Barrier& ready) {
  const auto bytes = static_cast<std::uint32_t>(rows.count * block.width);
  device::arrive_expect_bytes(ready, bytes);
  const std::int64_t unit = block.value_unit(tile, rows.first);
  device::bulk_load(array_of(shared, tile.rows_held), tile.values + unit * 16, bytes, ready);
}

/// Issues the copies of both windows, the rows guessed; one thread.
__device__ __forceinline__ void fetch_windows(const PlainTile& tile, const PlainBlock& block, Windows& shared) {
  fetch_times(tile, block, shared.bytes, shared.times_ready);
  fetch_rows(tile, block, {block.first_row, tile.row_capacity}, shared.bytes, shared.rows_ready);
}

template <class Time>
__device__ __forceinline__ Time plain_target(const PlainTile& tile, const PlainBlock& block, int target) {
  return device::load_now(reinterpret_cast<const Time*>(tile.targets) + block.b * tile.target_stride + block.begin +
                          target);
}

/// The place of q, from the block's window of timestamps.
template <class Time>
__device__ __forceinline__ Place<int> plain_place(const PlainTile& tile, const PlainBlock& block,
                                                  const unsigned char* shared, Time q) {
  const int first = max(block.time_base, 0);
  const int end = min(block.time_base + tile.time_bytes / static_cast<int>(sizeof(Time)), tile.samples);
  const auto* window = reinterpret_cast<const Time*>(array_of(shared, tile.times_held)) + (first - block.time_base);
  const auto* times = reinterpret_cast<const Time*>(tile.times) + block.b * tile.time_stride;
  return place_in(tile.interpolation, find_interval(times, tile.samples, window, Range{first, end - first}, q), q);
}

/// Whether the window of rows holds what a place needs.
__device__ __forceinline__ bool holds(const PlainTile& tile, int first_row, const Place<int>& at) {
  const int local = at.row - first_row;
  return local >= 0 && local + (at.weight != 0.0f ? 1 : 0) < tile.row_capacity;
}

}  // namespace tmaops::ops::resample::gpu
