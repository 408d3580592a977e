// The tiles of the GPU variants and what a product costs with each: what select() and the variants choose by.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// One way to cut a product into pieces that run on one multiprocessor each.
struct Tiling {
  std::string_view variant;
  int rows = 0;              // of D per piece
  int columns = 0;           // of D per piece
  int splits = 1;            // pieces that share a tile's K
  int share = 1;             // pieces that fetch one tile of B together (multicast)
  double start = 0;          // us before the first product and after the last one, per launch
  double finish = 0;         // us per piece in which the tensor cores stand still
  double step = 0;           // us per 64 of k of one piece
  std::int64_t least_k = 0;  // of problems it is made for
  bool one_wave = false;     // not for more pieces than multiprocessors
};

/// Estimated time of a launch in us.
double microseconds(const Tiling& tiling, const Problem& problem, int multiprocessors);

/// The cheapest tiling of a variant. `problem` in the form in which D is row-major.
const Tiling& best_tiling(std::string_view variant, const Problem& problem, int multiprocessors);

}  // namespace tmaops::ops::gemm
