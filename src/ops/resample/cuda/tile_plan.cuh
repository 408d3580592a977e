// How the variants with windows of rows in shared memory cut a problem into tiles.
#pragma once

#include "core/cuda_launch.hpp"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/tile_rows.cuh"

namespace tmaops::ops::resample::cuda {

/// Parameters of a tile, as chosen for a problem.
struct TileChoice {
  int threads = 128;
  int targets_per_warp = 32;
  int row_margin = 4;
  int time_margin = 4;
};

/// Shared memory for the rows of a tile. More leaves too few blocks per multiprocessor to hide the latency.
inline constexpr int kMostTileBytes = 64 * 1024;
inline constexpr int kMostStampBytes = 16 * 1024;

inline Tile make_tile(const Problem& problem, const Call& call, const TileChoice& choice, int& shared_bytes,
                      int most_bytes = kMostTileBytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Tile tile{};
  tile.chunks = Chunks(row_bytes);
  const int warps = choice.threads / device::kWarpThreads;
  tile.targets_per_warp = choice.targets_per_warp;
  tile.targets = tile.targets_per_warp * warps;
  tile.time_margin = choice.time_margin;
  tile.row_margin = choice.row_margin;
  tile.stamp_capacity =
      window_capacity(problem, call.longest_target, tile.targets, tile.time_margin, kMostStampBytes / time_bytes - 4);
  tile.stamp_bytes = slice_bytes(tile.stamp_capacity, time_bytes);
  tile.rows_at = (tile.stamp_bytes + 127) / 128 * 128;
  tile.row_capacity = window_capacity(problem, call.longest_target, tile.targets, tile.row_margin,
                                      (most_bytes - tile.rows_at) / row_bytes);
  shared_bytes = tile.rows_at + tile.row_capacity * static_cast<int>(row_bytes);
  return tile;
}

/// Eight chunks per lane.
inline TileChoice choose_tile(const Problem& problem, const Call& call) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  TileChoice choice;
  choice.time_margin = time_margin(problem.longest_source, call.longest_target);
  choice.row_margin = std::min(choice.time_margin, std::max(3, static_cast<int>(2048 / row_bytes)));
  choice.targets_per_warp =
      std::clamp(8 * device::kWarpThreads / static_cast<int>(row_bytes / 16), 1, device::kWarpThreads);
  return choice;
}

/// What variants with windows of 16-byte rows take.
inline Support supports_tiles(const Problem& problem) {
  if (Support support = supports_windows(problem); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  return supports_16_byte_rows(problem);
}

}  // namespace tmaops::ops::resample::cuda
