// Which tile of D a block computes. Blocks that run at the same time work on a nearly square part of D, so that they
// share rows of A and columns of B in the L2: groups of up to 16 tile rows, or all of them, are walked column by
// column. The grid has the shape of the walk, so that a block finds its tile without a division (tile_position.cuh).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/work.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

inline constexpr int kMostGridRows = 65535;  // CUDA's limit of gridDim.y and gridDim.z

struct TileOrder {
  int tile_rows = 0;     // tiles along M
  int group_shift = 0;   // log2 of the tile rows in a group, of which the last may have fewer; or kAllRows
  int tile_columns = 0;  // tiles along N

  static constexpr int kAllRows = -1;

  TileOrder() = default;
  TileOrder(const Problem& row_major, int rows, int columns)
      : tile_rows(static_cast<int>((row_major.m + rows - 1) / rows)),
        tile_columns(static_cast<int>((row_major.n + columns - 1) / columns)) {
    while (group_shift < 4 && (2 << group_shift) <= tile_rows) ++group_shift;
    while ((tile_rows >> group_shift) >= kMostGridRows) ++group_shift;
  }
  std::int64_t tiles() const { return std::int64_t{tile_rows} * tile_columns; }
  /// Whether the walk fits in a grid.
  bool fits() const { return (std::int64_t{tile_columns} << group_shift) <= INT32_MAX; }
  Extent grid(std::int64_t batch) const {
    const auto batches = static_cast<unsigned>(std::min<std::int64_t>(batch, kMostGridRows));
    if (group_shift == kAllRows)
      return {static_cast<unsigned>(tile_rows), static_cast<unsigned>(tile_columns), batches};
    return {static_cast<unsigned>(tile_columns) << group_shift,
            static_cast<unsigned>((tile_rows + (1 << group_shift) - 1) >> group_shift), batches};
  }
};

/// Shared memory to ask for where two blocks could share a multiprocessor. A grid that fits with one block each asks
/// for more than half: with dependent launch the next kernel's blocks would otherwise run in pairs on the
/// multiprocessors that are free (docs/findings/gemm.md, G8).
inline constexpr int kMoreThanHalf = 120 * 1024;
inline int shared_bytes(std::size_t needed, const TileOrder& order, const Problem& problem) {
  const bool one_each = order.tiles() * problem.batch <= device_info(problem.device).multiprocessors;
  return one_each ? std::max(kMoreThanHalf, static_cast<int>(needed)) : static_cast<int>(needed);
}

}  // namespace tmaops::ops::gemm
