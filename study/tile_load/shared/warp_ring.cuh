// A ring of stages of its own for every warp. A stage holds eight tiles. A warp issues the copies of the eight tiles
// two rounds ahead, waits for this round's on its own barrier, and sums them. There is no block barrier. Few warps with
// three stages are faster than more warps with two (docs/findings/tile_load.md, T3).
#pragma once

#include "device/barrier.cuh"
#include "device/shared_memory.cuh"
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load {

inline constexpr int kRingStages = 3;
inline constexpr int kRingThreads = 512;  // of a block at most
/// Two blocks of 16 warps of 6 KiB: 192 KiB of the multiprocessor's shared memory, 768 tiles in flight.
inline constexpr int kRingBlocksPerMultiprocessor = 2;

struct alignas(128) WarpRing {
  unsigned char stage[kRingStages][kTilesPerWarp * kTileBytes];
  device::Barrier full[kRingStages];
};
struct RingStorage {
  WarpRing warp[kRingThreads / device::kWarpThreads];
};

/// Copy is how a tile gets into shared memory: one thread calls `issue(tile, to, barrier)`. smem: of the variant's
/// line.
template <int smem, class Copy>
__device__ __forceinline__ void run_warp_ring(const DeviceProblem& problem, const Copy& copy) {
  const int warp = device::warp_index();
  const int lane = device::lane_index();
  WarpRing& ring = device::dynamic_shared<RingStorage, smem>().warp[warp];
  if (lane == 0) {
    for (device::Barrier& barrier : ring.full) device::init_barrier(barrier, 1);
    device::fence_barrier_init();
  }
  __syncwarp();

  const bool issues = lane < kTilesPerWarp;
  const auto coordinates = [&](std::uint32_t first) {
    const std::uint32_t t = first + static_cast<std::uint32_t>(lane);
    return issues && t < problem.tiles ? tile_at(problem, tile_number(problem, t)) : Tile{};
  };
  const auto fill = [&](std::uint32_t first, int stage, const Tile& tile) {
    if (first >= problem.tiles) return;
    const bool valid = issues && first + static_cast<std::uint32_t>(lane) < problem.tiles;
    const std::uint32_t bytes = kTileBytes * min(problem.tiles - first, static_cast<std::uint32_t>(kTilesPerWarp));
    if (lane == 0) device::arrive_expect_bytes(ring.full[stage], bytes);
    __syncwarp();
    if (valid) copy.issue(tile, ring.stage[stage] + lane * kTileBytes, ring.full[stage]);
  };

  const std::uint32_t tiles_per_block = blockDim.x / kLanesPerTile;
  const std::uint32_t stride = gridDim.x * tiles_per_block;
  std::uint32_t first = blockIdx.x * tiles_per_block + static_cast<std::uint32_t>(warp * kTilesPerWarp);
  Tile begin[kRingStages];  // all coordinates are on their way before the first is used
#pragma unroll
  for (int stage = 0; stage < kRingStages; ++stage)
    begin[stage] = coordinates(first + static_cast<std::uint32_t>(stage) * stride);
  std::uint32_t ahead = first;  // the tiles whose copies are issued next
#pragma unroll
  for (int stage = 0; stage < kRingStages - 1; ++stage, ahead += stride) fill(ahead, stage, begin[stage]);
  Tile next = begin[kRingStages - 1];
  for (std::uint32_t phase = 0; first < problem.tiles; phase ^= 1) {
#pragma unroll kRingStages
    for (int stage = 0; stage < kRingStages; ++stage) {
      if (first >= problem.tiles) break;
      fill(ahead, (stage + kRingStages - 1) % kRingStages, next);  // the stage that was read last
      ahead += stride;
      next = coordinates(ahead);
      device::wait(ring.full[stage], phase, {"eight tiles of a warp", stage});
      const int mine = lane / kLanesPerTile;
      const std::uint32_t t = first + static_cast<std::uint32_t>(mine);
      const bool there = t < problem.tiles;
      const int read = there ? mine : 0;  // a warp's first tile always exists
      const std::uint32_t sum = device::group_sum<kLanesPerTile>(
          checksum_of(ring.stage[stage] + read * kTileBytes, lane % kLanesPerTile, mine % 2));
      if (there && lane % kLanesPerTile == 0) problem.checksums[tile_number(problem, t)] = sum;
      __syncwarp();  // all have read the stage before it is filled again
      first += stride;
    }
  }
}

/// Large blocks are faster where there are many tiles; small ones start earlier (docs/findings/tile_load.md, T7).
inline PersistentShape ring_shape(const Problem& problem, std::int64_t tiles) {
  constexpr std::int64_t few_rounds = 8;
  const std::int64_t round =
      device_info(problem.device).multiprocessors * kRingBlocksPerMultiprocessor * (kRingThreads / kLanesPerTile);
  const int threads = tiles < few_rounds * round ? kBlockThreads : kRingThreads;
  return {.threads = threads,
          .blocks_per_multiprocessor = kRingBlocksPerMultiprocessor * kRingThreads / threads,
          .shared_bytes = threads / device::kWarpThreads * static_cast<int>(sizeof(WarpRing))};
}

}  // namespace tmaops::ops::tile_load
