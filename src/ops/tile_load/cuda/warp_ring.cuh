// A warp's own two-stage ring of eight tiles each: it issues the copies of the next eight tiles, waits for these eight
// on its own barrier, and sums them. No block barrier anywhere.
#pragma once

#include "device/barrier.cuh"
#include "ops/tile_load/cuda/gather.cuh"

namespace tmaops::ops::tile_load {

inline constexpr int kRingStages = 2;
/// 48 warps with 4 KiB each: 192 KiB of the multiprocessor's shared memory, 768 tiles in flight.
inline constexpr int kRingBlocksPerMultiprocessor = 12;

struct alignas(128) WarpTiles {
  unsigned char stage[kRingStages][kTilesPerWarp * kTileBytes];
};
struct RingStorage {
  WarpTiles warp[kBlockThreads / device::kWarpThreads];
  device::Barrier full[kBlockThreads / device::kWarpThreads][kRingStages];
};

/// Copy is how a tile gets into shared memory: `lanes` threads issue one tile's copies by `issue(tile, part, to,
/// barrier)`, each `bytes(tile, part)` long unless `whole_tiles` says that together they are always the whole tile.
template <class Copy>
__device__ __forceinline__ void run_warp_ring(const DeviceProblem& problem, RingStorage& shared, const Copy& copy) {
  const int warp = device::warp_index();
  const int lane = device::lane_index();
  auto& stages = shared.warp[warp].stage;
  auto& full = shared.full[warp];
  if (lane == 0) {
    for (device::Barrier& barrier : full) device::init_barrier(barrier, 1);
    device::fence_barrier_init();
  }
  __syncwarp();

  const int slot = lane / Copy::lanes;  // of the tile this thread issues for
  const bool issues = lane < kTilesPerWarp * Copy::lanes;
  const auto coordinates = [&](std::uint32_t first) {
    const std::uint32_t t = first + static_cast<std::uint32_t>(slot);
    return issues && t < problem.tiles ? tile_at(problem, tile_number(problem, t)) : Tile{};
  };
  const auto fill = [&](std::uint32_t first, int stage, const Tile& tile) {
    const bool valid = issues && first + static_cast<std::uint32_t>(slot) < problem.tiles;
    std::uint32_t bytes = kTileBytes * min(problem.tiles - first, static_cast<std::uint32_t>(kTilesPerWarp));
    if constexpr (!Copy::whole_tiles) bytes = device::warp_sum(valid ? copy.bytes(tile, lane % Copy::lanes) : 0);
    if (lane == 0) device::arrive_expect_bytes(full[stage], bytes);
    __syncwarp();
    if (valid) copy.issue(tile, lane % Copy::lanes, stages[stage] + slot * kTileBytes, full[stage]);
  };

  const std::uint32_t stride = gridDim.x * kTilesPerBlock;
  std::uint32_t first = blockIdx.x * kTilesPerBlock + static_cast<std::uint32_t>(warp * kTilesPerWarp);
  if (first < problem.tiles) fill(first, 0, coordinates(first));
  Tile next = coordinates(first + stride);
  std::uint32_t phase = 0;
  for (int stage = 0; first < problem.tiles; first += stride) {
    if (first + stride < problem.tiles) fill(first + stride, stage ^ 1, next);
    next = coordinates(first + 2 * stride);
    device::wait(full[stage], phase, {"eight tiles of a warp", stage});
    const int mine = lane / kLanesPerTile;
    const std::uint32_t sum = device::group_sum<kLanesPerTile>(
        checksum_of(stages[stage] + mine * kTileBytes, lane % kLanesPerTile, mine % 2));
    const std::uint32_t t = first + static_cast<std::uint32_t>(mine);
    if (t < problem.tiles && lane % kLanesPerTile == 0) problem.checksums[tile_number(problem, t)] = sum;
    __syncwarp();  // all have read the stage before it is filled again
    stage ^= 1;
    if (stage == 0) phase ^= 1;
  }
}

inline Support ring_supports(const Problem& problem, const DeviceInfo& device) {
  // Two rounds ahead of the last tile must still fit in 32 bits.
  if (problem.tiles() > INT32_MAX - (1 << 24)) return Support::no("more than 2^31 - 2^24 tiles");
  return needs_hopper(device);
}

}  // namespace tmaops::ops::tile_load
