// Which tile of D a block computes. Blocks that run at the same time work on a nearly square part of D, so that they
// share rows of A and columns of B in the L2: groups of up to 16 tile rows are walked column by column (64 x 128 at
// 1024: 5.6 us, against 5.75 with groups of 8 and 5.97 row by row). The grid has the shape of the walk, so that a block
// finds its tile without a division (which costs a small product 0.1 to 0.2 us).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/gemm/cuda/call.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kMostGridRows = 65535;  // CUDA's limit of gridDim.y and gridDim.z

struct TileOrder {
  int tile_rows = 0;     // tiles along M
  int group_shift = 0;   // log2 of the tile rows in a group
  int tile_columns = 0;  // tiles along N

  TileOrder() = default;
  TileOrder(const Problem& problem, int rows, int columns)
      : tile_rows(static_cast<int>((problem.m + rows - 1) / rows)),
        tile_columns(static_cast<int>((problem.n + columns - 1) / columns)) {
    while (group_shift < 4 && (2 << group_shift) <= tile_rows) ++group_shift;
    while ((tile_rows >> group_shift) >= kMostGridRows) ++group_shift;
  }
  std::int64_t tiles() const { return std::int64_t{tile_rows} * tile_columns; }
  /// Whether the walk fits in a grid.
  bool fits() const { return (std::int64_t{tile_columns} << group_shift) <= INT32_MAX; }
  dim3 grid(std::int64_t batch) const {
    return {static_cast<unsigned>(tile_columns) << group_shift,
            static_cast<unsigned>((tile_rows + (1 << group_shift) - 1) >> group_shift),
            static_cast<unsigned>(std::min<std::int64_t>(batch, kMostGridRows))};
  }
};

/// Whether tiles of rows x columns of D fit in a grid.
inline Support supports_grid(const Problem& problem, int rows, int columns) {
  const bool column_major = problem.d.order == Order::column;
  const TileOrder order(column_major ? transposed(problem) : problem, rows, columns);
  if (order.fits() && problem.batch <= kMostGridRows) return Support::yes();
  return Support::no("needs at most 65,535 batches, and tiles that fit in a grid");
}

/// Shared memory to ask for where two blocks could share a multiprocessor. A grid that fits with one block each asks
/// for more than half: with dependent launch the next kernel's blocks would otherwise pile up on the multiprocessors
/// that are free, and run in pairs (1024: 13.6 instead of 10 us).
inline constexpr int kMoreThanHalf = 120 * 1024;
inline int shared_bytes(std::size_t needed, const TileOrder& order, const Problem& problem) {
  const bool one_each = order.tiles() * problem.batch <= device_info(problem.device).multiprocessors;
  return one_each ? std::max(kMoreThanHalf, static_cast<int>(needed)) : static_cast<int>(needed);
}

struct TilePosition {
  int row;
  int column;
  /// x: the block's place along the grid's x, where that is not one block per tile.
  __device__ __forceinline__ TilePosition(const TileOrder& order, unsigned x)
      : row(static_cast<int>((blockIdx.y << order.group_shift) + (x & ((1u << order.group_shift) - 1)))),
        column(static_cast<int>(x >> order.group_shift)) {}
  __device__ __forceinline__ explicit TilePosition(const TileOrder& order) : TilePosition(order, blockIdx.x) {}
  /// The last group may have fewer rows than the grid.
  __device__ __forceinline__ bool inside(const TileOrder& order) const { return row < order.tile_rows; }
};

}  // namespace tmaops::ops::gemm::cuda
