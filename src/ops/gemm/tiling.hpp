// The tiles of the GPU variants and what a product costs with each: what select() and the variants choose by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// One way to cut a product into pieces that run on one multiprocessor each.
struct Tiling {
  std::string_view variant;
  std::string_view tile;     // its name within the variant: rows x columns, c8: a cluster of eight, k2: K cut in 2, r8:
                             // each eighth row
  int rows = 0;              // of D per piece
  int columns = 0;           // of D per piece
  int splits = 1;            // pieces that share a tile's K
  int share = 1;             // pieces that fetch one tile of B together (multicast)
  int cuts = 1;              // parts along N of each tile of the last wave, where all of those then run at once
  int row_step = 1;          // from one row of a piece to its next; more than 1: read in whole lines
  double start = 0;          // us before the first product and after the last one, per launch
  double finish = 0;         // us per piece in which the tensor cores stand still
  double step = 0;           // us per 64 of k of one piece
  std::int64_t least_k = 0;  // of problems it is made for
  bool one_wave = false;     // not for more pieces than run at the same time
  bool a_along_k = false;    // only for A contiguous along K
  bool b_along_k = false;    // only for B contiguous along K
  bool b_along_n = false;    // only for B contiguous along N
  bool plain = false;        // only for a D of 16 bits that is the rounded product and that TMA can write
};

/// Every tiling of every variant.
std::span<const Tiling> tilings();

/// Null when the variant has no tile of that name.
const Tiling* find_tiling(std::string_view variant, std::string_view tile);
/// "64x32, 64x128"; empty for a variant that is not a GPU's.
std::string tile_names(std::string_view variant);

/// Whether a problem is one that the tiling is made for, and why not. `problem` here and below in the form in which D
/// is row-major.
Support made_for(const Tiling& tiling, const Problem& problem, int multiprocessors);

/// Estimated time of a launch in us.
double microseconds(const Tiling& tiling, const Problem& problem, int multiprocessors);

/// The cheapest tiling of a variant.
const Tiling& best_tiling(std::string_view variant, const Problem& problem, int multiprocessors);

/// How a variant cuts a problem: as the caller said, else as is cheapest.
const Tiling& tiling_of(std::string_view variant, const Problem& problem, const Arguments& arguments);

}  // namespace tmaops::ops::gemm
