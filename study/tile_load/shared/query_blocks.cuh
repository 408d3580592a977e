// The launch of the published experiments: a block of 256 threads for the points of one query and level.
#pragma once

#include "device/shared_memory.cuh"
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load {

inline constexpr int kQueryThreads = 256;
inline constexpr int kQueryTiles = kQueryThreads / kLanesPerTile;  // of a block at most

/// Dynamic shared memory: as many tiles as there are points.
struct alignas(128) QueryTiles {
  unsigned char tile[kQueryTiles][kTileBytes];
};

inline Support query_blocks_supports(const Problem& problem) {
  if (problem.points > kQueryTiles)
    return Support::no("needs at most " + std::to_string(kQueryTiles) + " points: one per four threads of a block");
  return Support::yes();
}

inline LaunchShape query_blocks(const Problem& problem, const Arguments& arguments) {
  return {.grid = static_cast<unsigned>(problem.points == 0 ? 0 : problem.tiles() / problem.points),
          .block = kQueryThreads,
          .shared_bytes = static_cast<int>(problem.points) * kTileBytes,
          .dependent = arguments.dependent_launch};
}

}  // namespace tmaops::ops::tile_load
