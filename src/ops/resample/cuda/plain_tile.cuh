// Plain calls, one tile of consecutive targets per block: what bulk_window and touched_rows have in common. Set-up is
// kept short: one thread's chain of instructions from the first one to the copies is in the way of every short call
// (100 of them cost 0.2 us), and what every warp repeats is in the way of long ones.
#pragma once

#include <iterator>

#include "device/bulk_copy.cuh"
#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"

namespace tmaops::ops::resample::cuda {

/// Part of a tensor that the first blocks of a call bring into the L2, each a share. In units of 16 bytes.
struct Ahead {
  const unsigned char* from;
  std::uint32_t units;
  std::uint32_t share;  // 0: nothing is fetched
};
inline constexpr std::uint32_t kAheadBlocks = 528;  // 4 per multiprocessor

/// Stamps and target times that later blocks need, brought into the L2 on the way: every kBlocks-th block fetches those
/// of the kBlocks that follow kDistance later. For calls of several times the L2's size, where what was fetched at the
/// start has left it again. By single prefetches, a line each: those of the copy engine delay its copies.
struct Sliding {
  static constexpr std::uint32_t kBlocks = 8;
  static constexpr std::uint32_t kDistance = 2112;  // what an H200 holds of them at a time; twice that: 1 % slower
  struct Part {
    const unsigned char* from;
    std::uint32_t bytes;  // 0: nothing is fetched
    std::uint32_t share;  // of a block, in bytes, times 256
  } part[2];

  /// One warp.
  __device__ __forceinline__ void fetch(int lane) const {
    constexpr std::uint32_t kLine = 128;
    const std::uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
    if (block % kBlocks != 0) return;
    const Part& of = part[lane / 16];
    const std::uint32_t within = static_cast<std::uint32_t>(lane % 16) * kLine;
    const std::uint64_t at = static_cast<std::uint64_t>(block + kDistance) * of.share / 256 + within;
    if (within < kBlocks * of.share / 256 && at < of.bytes) device::prefetch_l2(of.from + at);
  }
};

/// A plain call cut into tiles, fixed on the host, passed to kernels by value. What a block can be spared is worked out
/// here; strides are in 32 bits. Shared memory: places, stamps, rows, output rows.
struct PlainTile {
  const unsigned char* stamps;   // of trajectory 0
  const unsigned char* targets;  // target times
  const unsigned char* values;
  unsigned char* output;
  int stamp_stride, target_stride;  // elements from one trajectory to the next
  int value_stride, output_stride;  // the same in units of 16 bytes
  int samples;
  int target_count;
  Pace pace;
  Chunks chunks;                  // of a row
  int tile;                       // targets per block
  int targets_per_warp;           // where warps keep to themselves
  int lane_shift;                 // Own: log2 of the lanes that share a target
  int step;                       // targets that a block, or a warp, combines at a time, one chunk per thread
  int time_margin, row_margin;    // samples
  int stamp_limit, row_limit;     // the last sample that a window may begin with
  int stamp_unit_limit;           // the same in units of 16 bytes of the whole tensor
  int stamp_bytes, row_capacity;  // of the windows: bytes, samples
  int stamps_at, rows_at, output_at;
  Ahead ahead[3];  // stamps, target times, first values
  Ahead burst;     // values, behind the block's own copies
  Interpolation interpolation;
};

/// Where the rows of a target are: `at` >= 0 is the offset of its row in the window of rows, or the row itself where
/// there is no window; else ~row. weight as in Place.
struct alignas(8) Spot {
  int at;
  float weight;
};

/// A block's trajectory, targets and windows.
struct PlainBlock {
  int b;
  int begin;       // first target
  int targets;     // of this tile
  int stamp_unit;  // where the window of stamps begins, in units of 16 bytes of the whole tensor
  int stamp_base;  // the sample there; below 0 in another trajectory
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

/// The sample beside a target, if both are evenly spread.
__device__ __forceinline__ int sample_beside(const Pace& pace, int target) {
  return static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(target)) * pace.ratio) >> pace.shift);
}

template <class Time>
__device__ __forceinline__ PlainBlock plain_block(const PlainTile& tile) {
  constexpr int per_unit = 16 / static_cast<int>(sizeof(Time));
  PlainBlock block;
  block.b = static_cast<int>(blockIdx.y);
  block.begin = static_cast<int>(blockIdx.x) * tile.tile;
  block.targets = min(tile.tile, tile.target_count - block.begin);
  const int place = sample_beside(tile.pace, block.begin);
  const int zero = block.b * tile.stamp_stride;
  const int first = zero + max(min(place - tile.time_margin, tile.stamp_limit), 0);
  block.stamp_unit = min(static_cast<int>(static_cast<unsigned>(first) / per_unit), tile.stamp_unit_limit);
  block.stamp_base = block.stamp_unit * per_unit - zero;
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
__device__ __forceinline__ void fetch_ahead(const Ahead (&ahead)[3]) {
  const std::uint32_t which = threadIdx.x - device::kWarpThreads;
  if (which < std::size(ahead)) fetch_share(ahead[which], device::CacheHint::evict_normal);
}
__device__ __forceinline__ void fetch_ahead(const PlainTile& tile) { fetch_ahead(tile.ahead); }

/// Issues the copy of the stamps; one thread. The tensor's end behind its last multiple of 16 bytes is not copied, and
/// read from global memory where it is needed.
__device__ __forceinline__ void fetch_stamps(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                             device::Barrier& ready) {
  device::arrive_expect_bytes(ready, static_cast<std::uint32_t>(tile.stamp_bytes));
  device::bulk_load(shared + tile.stamps_at, tile.stamps + static_cast<std::int64_t>(block.stamp_unit) * 16,
                    static_cast<std::uint32_t>(tile.stamp_bytes), ready);
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
  const int first = max(block.stamp_base, 0);
  const int end = min(block.stamp_base + tile.stamp_bytes / static_cast<int>(sizeof(Time)), tile.samples);
  const auto* window = reinterpret_cast<const Time*>(shared + tile.stamps_at) + (first - block.stamp_base);
  const auto* times = reinterpret_cast<const Time*>(tile.stamps) + block.b * tile.stamp_stride;
  return place_in(tile.interpolation, find_interval(times, tile.samples, window, Range{first, end - first}, q), q);
}

/// Whether the window of rows holds what a place needs.
__device__ __forceinline__ bool holds(const PlainTile& tile, int first_row, const Place<int>& at) {
  const int local = at.row - first_row;
  return local >= 0 && local + (at.weight != 0.0f ? 1 : 0) < tile.row_capacity;
}

/// Leaves the place of target t in shared memory.
template <bool window, class Time>
__device__ __forceinline__ void locate_target(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                              Time q, int t) {
  const Place<int> at = plain_place(tile, block, shared, q);
  Spot spot{at.row, at.weight};
  if (window) spot.at = holds(tile, block.first_row, at) ? (at.row - block.first_row) * block.width : ~at.row;
  reinterpret_cast<Spot*>(shared)[t] = spot;
}

/// How many warps locate_targets() keeps busy: so often it arrives at `placed`.
__host__ __device__ constexpr int searching_warps(int targets, int threads) {
  return ((targets < threads ? targets : threads) + device::kWarpThreads - 1) / device::kWarpThreads;
}

/// The first warps locate the targets of the tile, one per lane; `q` is the thread's first target time.
template <bool window, class Time>
__device__ __forceinline__ void locate_targets(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                               Time q, device::Barrier& stamps_ready, device::Barrier& placed) {
  const auto threads = static_cast<int>(blockDim.x);
  if (static_cast<int>(threadIdx.x) / device::kWarpThreads >= searching_warps(tile.tile, threads)) return;
  device::wait(stamps_ready, 0);
  for (auto t = static_cast<int>(threadIdx.x); t < block.targets;) {
    locate_target<window>(tile, block, shared, q, t);
    t += threads;
    if (t < block.targets) q = plain_target<Time>(tile, block, t);
  }
  __syncwarp();
  if (device::lane_index() == 0) device::arrive(placed);
}

/// A thread's column of the rows, in bytes, and the targets it combines: first, first + step, ... before end.
struct Strand {
  int column;
  int first;
  int step;
  int end;
};
/// The block's threads side by side along its targets.
__device__ __forceinline__ Strand block_strand(const PlainTile& tile, int targets) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int first = tile.chunks.row_of(thread);
  return {(thread - first * tile.chunks.count) * 16, first, tile.step,
          first < tile.step ? targets : 0};  // the block need not be a multiple of a row
}
/// The warp's lanes along its own targets; rows are of 2^n chunks, at most 32.
__device__ __forceinline__ Strand warp_strand(const PlainTile& tile, int targets) {
  const auto begin = static_cast<int>(threadIdx.x) / device::kWarpThreads * tile.targets_per_warp;
  const int lane = device::lane_index();
  return {(lane & (tile.chunks.count - 1)) * 16, begin + tile.chunks.row_of(lane), tile.step,
          min(begin + tile.targets_per_warp, targets)};
}

/// Combines `items` chunks at a time, all loaded before the first is used. `staged`: into shared memory.
template <class Value, int items, bool window, bool staged>
__device__ __forceinline__ void combine_spots(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                              const Strand& strand) {
  const auto* spots = reinterpret_cast<const Spot*>(shared);
  const unsigned char* held = shared + tile.rows_at + strand.column;
  const unsigned char* values = tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16 + strand.column;
  unsigned char* output = (staged ? shared + tile.output_at : block.output(tile, 0)) + strand.column;
#pragma unroll 1
  for (int base = strand.first; base < strand.end; base += items * strand.step) {
    uint4 a[items];
    uint4 b[items];
    float weight[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int t = base + k * strand.step;
      if (t >= strand.end) break;
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
      const int t = base + k * strand.step;
      if (t >= strand.end) break;
      const uint4 mixed = mix_16<Value>(a[k], b[k], weight[k]);
      if (staged)
        *reinterpret_cast<uint4*>(output + t * block.width) = mixed;
      else
        device::store_16_streaming(output + static_cast<std::int64_t>(t) * block.width, mixed);
    }
  }
}

}  // namespace tmaops::ops::resample::cuda
