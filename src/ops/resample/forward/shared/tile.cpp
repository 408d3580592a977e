#include "ops/resample/forward/shared/tile.hpp"

namespace tmaops::ops::resample::gpu {

int targets_per_warp(const Problem& problem) {
  return std::clamp(8 * kWarp / static_cast<int>(problem.row_bytes() / 16), 1, kWarp);
}

int row_margin(const Problem& problem, int time_margin) {
  return std::min(time_margin, std::max(3, static_cast<int>(2048 / problem.row_bytes())));
}

Tile make_tile(const Problem& problem, std::int64_t longest_target, int most_bytes) {
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Tile tile{};
  tile.chunks = chunks_of(problem.row_bytes());
  tile.targets_per_warp = targets_per_warp(problem);
  tile.targets = tile.targets_per_warp * (kTileThreads / kWarp);
  tile.time_margin = time_margin(problem.longest_source, longest_target);
  tile.row_margin = row_margin(problem, tile.time_margin);
  tile.time_capacity =
      window_capacity(problem, longest_target, tile.targets, tile.time_margin, kMostTimeBytes / time_bytes - 4);
  SharedLayout layout;
  tile.time_bytes = slice_bytes(tile.time_capacity, time_bytes);
  layout.add<unsigned char>(tile.time_bytes);
  tile.rows = layout.add<unsigned char>(0);
  tile.row_capacity = window_capacity(problem, longest_target, tile.targets, tile.row_margin,
                                      (most_bytes - tile.rows.at) / problem.row_bytes());
  layout.add<unsigned char>(tile.row_capacity * problem.row_bytes(), 1);
  tile.shared_end = layout.end;
  return tile;
}

}  // namespace tmaops::ops::resample::gpu
