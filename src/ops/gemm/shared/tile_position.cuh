// A block's tile in the walk of TileOrder.
#pragma once

#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm {

struct TilePosition {
  int row;
  int column;
  /// x: the block's place along the grid's x, where that is not one block per tile.
  __device__ __forceinline__ TilePosition(const TileOrder& order, unsigned x)
      : row(static_cast<int>(x)), column(static_cast<int>(blockIdx.y)) {
    if (order.group_shift == TileOrder::kAllRows) return;
    row = static_cast<int>((blockIdx.y << order.group_shift) + (x & ((1u << order.group_shift) - 1)));
    column = static_cast<int>(x >> order.group_shift);
  }
  __device__ __forceinline__ explicit TilePosition(const TileOrder& order) : TilePosition(order, blockIdx.x) {}
  /// The last group may have fewer rows than the grid.
  __device__ __forceinline__ bool inside(const TileOrder& order) const { return row < order.tile_rows; }
};

}  // namespace tmaops::ops::gemm
