// The order in which queries are visited, so that neighbours in the image follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/elements.hpp"

namespace tmaops::ops::ms_deform_attn {

/// A permutation of the queries of the whole batch, counted n * queries + q: image by image, tile by tile, there and
/// back. A query belongs to the tile that its first point samples. Results do not depend on the order. Neighbouring
/// queries sample neighbouring pixels, so the pixels around a tile stay in the L2 cache while it is worked on; in
/// raster order a whole band of the image would have to.
inline std::vector<std::int64_t> query_order(const Problem& problem, const ConstTensorView& locations) {
  constexpr std::int64_t kTile = 16;       // pixels of the largest level
  constexpr std::int64_t kMaxTiles = 256;  // along one side
  const Level& largest =
      *std::max_element(problem.levels.begin(), problem.levels.end(),
                        [](const Level& a, const Level& b) { return a.height * a.width < b.height * b.width; });
  const std::int64_t columns = std::clamp<std::int64_t>(largest.width / kTile, 1, kMaxTiles);
  const std::int64_t rows = std::clamp<std::int64_t>(largest.height / kTile, 1, kMaxTiles);
  const std::int64_t tiles = rows * columns;
  const std::int64_t total = problem.batch * problem.queries;
  std::vector<std::int32_t> tile(static_cast<std::size_t>(total));
  const auto cell = [](double coordinate, std::int64_t count) {
    const double scaled = coordinate * static_cast<double>(count);
    return scaled > 0 ? static_cast<std::int64_t>(std::min(scaled, static_cast<double>(count - 1))) : std::int64_t{0};
  };
  constexpr std::int64_t kGrain = 512;
  parallel_for(total, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = head_offset(locations, i / problem.queries, i % problem.queries, 0);
      const std::int64_t row = cell(read(locations, at + xy_stride(locations)), rows);
      const std::int64_t column = cell(read(locations, at), columns);
      const std::int64_t snake = row % 2 == 0 ? column : columns - 1 - column;
      tile[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(row * columns + snake);
    }
  });
  std::vector<std::int64_t> order(static_cast<std::size_t>(total));
  std::vector<std::int64_t> next(static_cast<std::size_t>(tiles));
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    const std::int64_t first = n * problem.queries;
    std::fill(next.begin(), next.end(), 0);
    for (std::int64_t q = 0; q < problem.queries; ++q)
      ++next[static_cast<std::size_t>(tile[static_cast<std::size_t>(first + q)])];
    std::int64_t sum = first;
    for (std::int64_t& entry : next) sum += std::exchange(entry, sum);
    for (std::int64_t q = 0; q < problem.queries; ++q)
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(tile[static_cast<std::size_t>(first + q)])]++)] =
          first + q;
  }
  return order;
}

}  // namespace tmaops::ops::ms_deform_attn
