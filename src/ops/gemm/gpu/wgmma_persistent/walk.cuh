// The order in which persistent blocks take the tiles of D, and the pieces of tiles that end it.
#pragma once

#include <algorithm>

#include "ops/gemm/shared/warp_roles.cuh"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_persistent {

/// Of a tile of n columns.
template <int n>
inline constexpr int kRows = n == 168 ? 256 : kSpecializedRows;

/// Tiles of the last wave may be cut into pieces of 64 columns, so that few of them keep more multiprocessors busy, for
/// a shorter time.
inline constexpr int kPieceColumns = 64;
template <int n>
inline constexpr bool kMayCut = n == 192;

/// Divides numbers from 0 to 2^31 - 1 by a known one: a division takes longer than a block's set-up has
/// (docs/findings/gemm_large.md, P13).
struct Divisor {
  std::uint32_t factor;
  int shift = 0;

  explicit Divisor(std::int64_t by = 1) {
    while ((std::int64_t{1} << shift) < by) ++shift;
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift)) + static_cast<std::uint64_t>(by) - 1) /
                                        static_cast<std::uint64_t>(by));
  }
  __host__ __device__ __forceinline__ int into(int number) const {
    return static_cast<int>(std::uint64_t{static_cast<std::uint32_t>(number)} * factor >> (31 + shift));
  }
};

constexpr int kSharing = 16;   // neighbouring blocks that share the lines that they ask for
constexpr int kStripRows = 4;  // of their tiles

/// The walk of a block over its tiles: groups of rows, column by column, batch after batch. The columns of every second
/// group run backwards, so that it begins with what the last one left in the L2. 16 neighbours share the lines that
/// they ask for (docs/findings/gemm_models.md, L2), so they take four rows of 16 columns, and then the next four.
struct Walk {
  int row_tiles = 0;
  int column_tiles = 0;
  int group = 0;  // row tiles that are walked together
  int whole = 0;  // tiles over all batches, without those that are cut
  int steps = 0;  // of all blocks together: whole tiles, then pieces
  bool strips = false;
  Divisor in_batch, in_group, rows, last_rows;

  __device__ __forceinline__ void locate(int tile, int& row, int& column, int& batch) const {
    batch = in_batch.into(tile);
    tile -= batch * (row_tiles * column_tiles);
    const int number = in_group.into(tile);
    tile -= number * group * column_tiles;
    const bool last = (number + 1) * group > row_tiles;
    column = (last ? last_rows : rows).into(tile);
    const int in_group_rows = last ? row_tiles - number * group : group;
    row = number * group + tile - column * in_group_rows;
    const int first = column / kSharing * kSharing;
    if (strips && in_group_rows % kStripRows == 0 && first + kSharing <= column_tiles) {
      tile -= first * in_group_rows;
      row = number * group + tile / (kStripRows * kSharing) * kStripRows + tile % kStripRows;
      column = first + tile / kStripRows % kSharing;
    }
    if ((number & 1) != 0) column = column_tiles - 1 - column;
  }
};

/// Where a step of the walk lies in D.
struct TilePlace {
  int row = 0;
  int column = 0;
  int batch = 0;
  bool piece = false;  // kPieceColumns wide
};

/// Of a walk over tiles of n columns.
template <int n>
__device__ __forceinline__ TilePlace place_of(const Walk& walk, const SpecializedJob& job, int step) {
  TilePlace place;
  int part = 0;
  if (kMayCut<n> && step >= walk.whole) {
    constexpr int kPieces = n / kPieceColumns;
    const int number = step - walk.whole;
    place.piece = true;
    part = number % kPieces;
    step = walk.whole + number / kPieces;
  }
  walk.locate(step, place.row, place.column, place.batch);
  place.row = min(place.row * kRows<n>, job.last_row);
  place.column = min(place.column * n, job.last_column) + part * kPieceColumns;
  return place;
}

/// Calls fn.template operator()<columns>() with those of a piece or of a tile.
template <int n, class Fn>
__device__ __forceinline__ void with_columns(bool piece, const Fn& fn) {
  if constexpr (kMayCut<n>) {
    if (piece) return fn.template operator()<kPieceColumns>();
  }
  fn.template operator()<n>();
}

/// The A of rows that are walked together should stay in the L2; with fewer rows B is read too often.
constexpr std::int64_t kGroupBytes = std::int64_t{16} << 20;
constexpr std::int64_t kFewestGroupRows = 2048;

inline Walk walk_of(const Problem& row_major, int rows, int columns) {
  const std::int64_t row_bytes = 2 * std::max<std::int64_t>(row_major.k, 1);
  const std::int64_t group_rows = std::max(kFewestGroupRows, kGroupBytes / row_bytes);
  Walk walk;
  walk.row_tiles = static_cast<int>(ceil_div(row_major.m, rows));
  walk.column_tiles = static_cast<int>(ceil_div(row_major.n, columns));
  walk.strips = walk.column_tiles > kSharing;
  const std::int64_t few_columns = std::max<std::int64_t>(kStripRows, ceil_div(kSharing, walk.column_tiles));
  const std::int64_t group = walk.strips ? group_rows / rows : few_columns;
  walk.group = static_cast<int>(std::clamp<std::int64_t>(group, 1, walk.row_tiles));
  const std::int64_t in_batch = std::int64_t{walk.row_tiles} * walk.column_tiles;
  walk.whole = walk.steps = static_cast<int>(std::min<std::int64_t>(in_batch * row_major.batch, INT32_MAX));
  walk.in_batch = Divisor(std::min<std::int64_t>(in_batch, INT32_MAX));
  walk.in_group = Divisor(std::min<std::int64_t>(std::int64_t{walk.group} * walk.column_tiles, INT32_MAX));
  walk.rows = Divisor(walk.group);
  walk.last_rows = Divisor(std::max(1, walk.row_tiles % walk.group));
  return walk;
}

/// Cuts the tiles of the last wave where that makes it shorter.
inline void cut_last_wave(Walk& walk, int blocks, int pieces) {
  const int rest = walk.steps % blocks;
  if (rest * pieces > blocks) return;
  walk.whole = walk.steps - rest;
  walk.steps = walk.whole + rest * pieces;
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
