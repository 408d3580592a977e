// From the places of a plain tile to its output rows, with a window of rows in shared memory: ways to divide the
// targets among the threads of a block. What the window does not hold is read from global memory.
#pragma once

#include "device/fence.cuh"
#include "ops/resample/cuda/plain_tile.cuh"

namespace tmaops::ops::resample::cuda {

/// What a mapping works with.
template <class Time>
struct PlainWork {
  const PlainTile& tile;
  const PlainBlock& block;
  unsigned char* shared;
  Time q;  // of the target first_target()
  device::Barrier& stamps_ready;
  device::Barrier& rows_ready;
};

/// Every lane locates the target whose chunks it combines, `chunks` of them: lanes of one target repeat its search in
/// step, and nothing is passed between threads. The shortest way from stamps to output. `window`: rows in shared
/// memory.
template <int chunks, bool window>
struct Own {
  static constexpr int kThreads = chunks == 4 ? 128 : 256;
  static constexpr int kBlocks = chunks == 4 || !window ? 8 : 6;
  // 256,500->250,32 with a window: 4.6 us against 5.0; more chunks: the other way round. Without: once it has located.
  static constexpr bool kEarly = window && chunks == 1;
  static constexpr bool kPrefetch = false;

  static __device__ __forceinline__ int arrivals(const PlainTile&) { return 0; }
  static __device__ __forceinline__ int first_target(const PlainTile& tile) {
    return static_cast<int>(threadIdx.x) >> tile.lane_shift;
  }
  template <class Value, class Time>
  static __device__ __forceinline__ void run(const PlainWork<Time>& work) {
    const PlainTile& tile = work.tile;
    const PlainBlock& block = work.block;
    const int target = first_target(tile);
    const bool active = target < block.targets;
    device::wait(work.stamps_ready, 0);
    Place<int> at{0, missing()};
    if (active) at = plain_place(tile, block, work.shared, work.q);
    if constexpr (window) device::wait(work.rows_ready, 0);
    if constexpr (!kEarly) device::let_next_kernel_start();
    if (!active) return;

    const int lanes = 1 << tile.lane_shift;
    const int column = (static_cast<int>(threadIdx.x) & (lanes - 1)) * 16;
    const int step = lanes * 16;
    const int second = fabsf(at.weight) > 0.0f ? block.width : 0;
    unsigned char* to = block.output(tile, target) + column;
    uint4 a[chunks];
    uint4 b[chunks];
    if (window && holds(tile, block.first_row, at)) {
      const unsigned char* from = work.shared + tile.rows_at + (at.row - block.first_row) * block.width + column;
#pragma unroll
      for (int k = 0; k < chunks; ++k) {
        a[k] = *reinterpret_cast<const uint4*>(from + k * step);
        b[k] = *reinterpret_cast<const uint4*>(from + second + k * step);
      }
    } else {
      const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, at.row)) * 16 + column;
#pragma unroll
      for (int k = 0; k < chunks; ++k) {
        a[k] = device::load_16(from + k * step);
        b[k] = device::load_16(from + second + k * step);
      }
    }
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      const uint4 mixed = mix_16<Value>(a[k], b[k], at.weight);
      // 1024,512->512,128: ordinary stores 66.0 us, streaming ones 66.9. Short calls and those that write much more
      // than they read, which have a window: 3 to 7 % the other way round.
      if constexpr (window)
        device::store_16_streaming(to + k * step, mixed);
      else
        device::store_16(to + k * step, mixed);
    }
  }
};

/// The first warps locate the targets for all: a search costs a warp about as many instructions as combining eight
/// chunks per lane. `staged`: the tile's output goes to shared memory and leaves by one bulk store (1 % faster while a
/// call reads as much as it writes, much slower when it writes more).
template <bool staged>
struct Together {
  static constexpr int kThreads = 256;
  static constexpr int kBlocks = 4;
  static constexpr bool kEarly = false;
  static constexpr bool kPrefetch = false;

  static __device__ __forceinline__ int arrivals(const PlainTile& tile) {
    return searching_warps(tile.tile, static_cast<int>(blockDim.x));
  }
  static __device__ __forceinline__ int first_target(const PlainTile&) { return static_cast<int>(threadIdx.x); }
  template <class Value, class Time>
  static __device__ __forceinline__ void run(const PlainWork<Time>& work) {
    const PlainTile& tile = work.tile;
    const PlainBlock& block = work.block;
    locate_targets<true>(tile, block, work.shared, work.q, work.stamps_ready, work.rows_ready);
    device::wait(work.rows_ready, 0);
    device::let_next_kernel_start();
    combine_spots<Value, 4, true, staged>(tile, block, work.shared, block_strand(tile, block.targets));
    if constexpr (staged) {
      device::fence_async_shared();
      __syncthreads();
      if (threadIdx.x != 0) return;
      device::bulk_store(block.output(tile, 0), work.shared + tile.output_at,
                         static_cast<std::uint32_t>(block.targets * block.width));
      device::commit_stores();
      device::wait_stores_read();
    }
  }
};

/// Each warp locates and combines its own targets: rows of 2^n chunks, at most 32.
struct Apart {
  static constexpr int kThreads = 128;
  static constexpr int kBlocks = 8;
  static constexpr bool kEarly = false;
  static constexpr bool kPrefetch = false;

  static __device__ __forceinline__ int arrivals(const PlainTile&) { return 0; }
  static __device__ __forceinline__ int first_target(const PlainTile& tile) {
    const auto warp = static_cast<int>(threadIdx.x) / device::kWarpThreads;
    const int lane = device::lane_index();
    return lane < tile.targets_per_warp ? warp * tile.targets_per_warp + lane : tile.tile;
  }
  template <class Value, class Time>
  static __device__ __forceinline__ void run(const PlainWork<Time>& work) {
    const PlainTile& tile = work.tile;
    const PlainBlock& block = work.block;
    const int target = first_target(tile);
    device::wait(work.stamps_ready, 0);
    if (target < block.targets) locate_target<true>(tile, block, work.shared, work.q, target);
    __syncwarp();
    device::wait(work.rows_ready, 0);
    device::let_next_kernel_start();
    combine_spots<Value, 4, true, false>(tile, block, work.shared, warp_strand(tile, block.targets));
  }
};

/// As Together, but a lane keeps its column and walks along consecutive targets: those between the same two samples
/// share what was read. 16-bit values in rows of a multiple of 512 bytes, many targets per sample.
struct Walk {
  static constexpr int kThreads = 256;
  static constexpr int kBlocks = 4;
  static constexpr bool kEarly = true;
  static constexpr bool kPrefetch = true;  // of all values

  static __device__ __forceinline__ int arrivals(const PlainTile& tile) {
    return searching_warps(tile.tile, static_cast<int>(blockDim.x));
  }
  static __device__ __forceinline__ int first_target(const PlainTile&) { return static_cast<int>(threadIdx.x); }
  template <class Value, class Time>
  static __device__ __forceinline__ void run(const PlainWork<Time>& work) {
    const PlainTile& tile = work.tile;
    const PlainBlock& block = work.block;
    locate_targets<true>(tile, block, work.shared, work.q, work.stamps_ready, work.rows_ready);
    device::wait(work.rows_ready, 0);
    const auto begin = static_cast<int>(threadIdx.x) / device::kWarpThreads * tile.targets_per_warp;
    const int end = min(begin + tile.targets_per_warp, block.targets);
    const auto* spots = reinterpret_cast<const Spot*>(work.shared);
    for (int column = device::lane_index() * 16; column < block.width; column += device::kWarpThreads * 16) {
      unsigned char* to = block.output(tile, begin) + column;
      Spot loaded{0, missing()};
      bool first = true;
      Unpacked<Value> a;
      Unpacked<Value> rise;
      uint4 raw{};
      for (int t = begin; t < end; ++t, to += block.width) {
        const Spot spot = spots[t];
        const bool two = fabsf(spot.weight) > 0.0f;
        if (first || spot.at != loaded.at || two != (fabsf(loaded.weight) > 0.0f)) {
          const int second = two ? block.width : 0;
          uint4 next;
          if (spot.at >= 0) {
            const unsigned char* from = work.shared + tile.rows_at + spot.at + column;
            raw = *reinterpret_cast<const uint4*>(from);
            next = *reinterpret_cast<const uint4*>(from + second);
          } else {
            const unsigned char* from =
                tile.values + static_cast<std::int64_t>(block.value_unit(tile, ~spot.at)) * 16 + column;
            raw = device::load_16(from);
            next = device::load_16(from + second);
          }
          a = unpack<Value>(raw);
          rise = unpack<Value>(next);
#pragma unroll
          for (int i = 0; i < Unpacked<Value>::count; ++i) rise.at[i] -= a.at[i];
          first = false;
        }
        loaded = spot;
        Unpacked<Value> mixed;
#pragma unroll
        for (int i = 0; i < Unpacked<Value>::count; ++i) mixed.at[i] = fmaf(spot.weight, rise.at[i], a.at[i]);
        device::store_16_streaming(to, spot.weight == 0.0f ? raw : pack(mixed));
      }
    }
  }
};

}  // namespace tmaops::ops::resample::cuda
