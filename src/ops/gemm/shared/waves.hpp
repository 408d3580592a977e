// How many tiles a product has, whether they all run at once, and their order. D is row-major here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/gemm/problem.hpp"
#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm {

/// a / b, rounded up.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Blocks, or tiles of persistent blocks, that a product is cut into.
inline std::int64_t tile_count(const Config& config, const Problem& problem) {
  const std::int64_t rows = ceil_div(problem.m, config.rows * config.cluster) * config.cluster;
  return rows * ceil_div(problem.n, config.columns) * problem.batch * config.splits * config.parts;
}

/// Blocks that run at the same time, one a multiprocessor. A cluster of more than two lies within one of the chip's
/// parts, which have 14 to 18 multiprocessors, and leaves some of each idle: 30 clusters of four and 15 of eight fit on
/// an H200, with 132.
inline std::int64_t blocks_at_once(const Config& config, const DeviceInfo& device) {
  const int most = std::max(device.multiprocessors, 1);
  const int size = config.cluster * config.splits;
  return size <= 2 ? most : std::max(most * 10 / 11 / size * size, size);
}

inline bool is_one_wave(const Config& config, const Problem& problem, const DeviceInfo& device) {
  return tile_count(config, problem) <= blocks_at_once(config, device);
}

/// The order of tiles. Where few waves run, neighbours take four rows and then the next column, so that they ask for
/// the same lines (docs/findings/gemm.md, G28). In one wave no more blocks are launched than run at once: those without
/// a tile would keep others waiting (gemm_models.md, L12).
inline TileOrder order_of_tiles(const Problem& problem, const Config& config) {
  constexpr int kFewWaves = 4;
  TileOrder order(problem, config.rows, config.columns);
  const std::int64_t tiles = order.tiles() * problem.batch;
  const std::int64_t at_once = blocks_at_once(config, device_info(problem.device)) / config.splits;  // tiles
  if (tiles > kFewWaves * at_once) return order;
  order.group_shift = std::min(order.group_shift, 2);
  const auto launched = [&] { return std::int64_t{order.grid(1).x} * order.grid(1).y * problem.batch; };
  if (tiles > at_once) return order;
  while (order.group_shift > 1 && launched() > at_once) --order.group_shift;
  if (launched() > at_once) order.group_shift = TileOrder::kAllRows;
  return order;
}

}  // namespace tmaops::ops::gemm
