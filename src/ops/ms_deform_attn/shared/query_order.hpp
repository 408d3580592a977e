// The order in which queries are visited, so that neighbours in the image follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn {

/// A permutation of the queries of the whole batch, counted n * queries + q: image by image, tile by tile, there and
/// back. A query belongs to the tile that its first point samples. Results do not depend on the order. Neighbouring
/// queries sample neighbouring pixels, so the pixels around a tile stay in the L2 cache while it is worked on; in
/// raster order a whole band of the image would have to.
struct QueryOrder {
  std::vector<std::int64_t> queries;
  /// Tile t of image n is queries[begin[n * tiles() + t]] and on, up to the next entry.
  std::vector<std::int64_t> begin;
  std::int64_t rows;
  std::int64_t columns;

  std::int64_t tiles() const { return rows * columns; }
  std::int64_t row(std::int64_t tile) const { return tile / columns; }
  /// Even rows of tiles run to the right, odd ones back.
  std::int64_t column(std::int64_t tile) const {
    const std::int64_t along = tile % columns;
    return row(tile) % 2 == 0 ? along : columns - 1 - along;
  }

  QueryOrder(const Problem& problem, const ConstTensorView& locations) {
    constexpr std::int64_t kTile = 16;       // pixels of the largest level
    constexpr std::int64_t kMaxTiles = 256;  // along one side
    const Level& largest =
        *std::max_element(problem.levels.begin(), problem.levels.end(),
                          [](const Level& a, const Level& b) { return a.height * a.width < b.height * b.width; });
    columns = std::clamp<std::int64_t>(largest.width / kTile, 1, kMaxTiles);
    rows = std::clamp<std::int64_t>(largest.height / kTile, 1, kMaxTiles);
    sort(problem, tiles_of(problem, locations));
  }

 private:
  /// The tile of every query.
  std::vector<std::int32_t> tiles_of(const Problem& problem, const ConstTensorView& locations) const {
    const std::int64_t total = problem.batch * problem.queries;
    std::vector<std::int32_t> tile(static_cast<std::size_t>(total));
    const auto cell = [](double coordinate, std::int64_t count) {
      const double scaled = coordinate * static_cast<double>(count);
      return scaled > 0 ? static_cast<std::int64_t>(std::min(scaled, static_cast<double>(count - 1))) : std::int64_t{0};
    };
    constexpr std::int64_t kGrain = 512;
    parallel_for(total, kGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at = head_offset(locations, i / problem.queries, i % problem.queries, 0);
        const std::int64_t r = cell(read(locations, at + xy_stride(locations)), rows);
        const std::int64_t c = cell(read(locations, at), columns);
        tile[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(r * columns + (r % 2 == 0 ? c : columns - 1 - c));
      }
    });
    return tile;
  }

  void sort(const Problem& problem, const std::vector<std::int32_t>& tile) {
    queries.resize(tile.size());
    begin.assign(static_cast<std::size_t>(problem.batch * tiles() + 1), 0);
    const auto slot = [&](std::int64_t n, std::int64_t q) {
      return static_cast<std::size_t>(n * tiles() + tile[static_cast<std::size_t>(n * problem.queries + q)]);
    };
    for (std::int64_t n = 0; n < problem.batch; ++n)
      for (std::int64_t q = 0; q < problem.queries; ++q) ++begin[slot(n, q) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::int64_t> next = begin;
    for (std::int64_t n = 0; n < problem.batch; ++n)
      for (std::int64_t q = 0; q < problem.queries; ++q)
        queries[static_cast<std::size_t>(next[slot(n, q)]++)] = n * problem.queries + q;
  }
};

}  // namespace tmaops::ops::ms_deform_attn
