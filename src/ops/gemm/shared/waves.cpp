#include "ops/gemm/shared/waves.hpp"

#include <algorithm>

namespace tmaops::ops::gemm {
namespace {

std::int64_t tiles_in(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile; }

/// Tiles that run at the same time. A cluster of more than two lies within one of the chip's parts, which have 14 to 18
/// multiprocessors: 15 clusters of eight fit on an H200 of 132.
int tiles_at_once(const Config& config, const DeviceInfo& device) {
  const int most = std::max(device.multiprocessors, 1);
  return config.cluster > 2 ? most * 7 / 8 / config.cluster * config.cluster : most;
}

}  // namespace

std::int64_t tile_count(const Config& config, const Problem& problem) {
  const std::int64_t rows = tiles_in(problem.m, config.rows * config.cluster) * config.cluster;
  return rows * tiles_in(problem.n, config.columns) * problem.batch * config.splits;
}

bool is_one_wave(const Config& config, const Problem& problem, const DeviceInfo& device) {
  return tile_count(config, problem) <= tiles_at_once(config, device);
}

}  // namespace tmaops::ops::gemm
