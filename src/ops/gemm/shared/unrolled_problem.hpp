// Products for the unrolled kernels: cut into whole tiles, with a K that the compiler knows.
#pragma once

#include <algorithm>

#include "core/work.hpp"
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm {

inline constexpr int kUnrolledRows = 64;  // of a tile

/// Tile rows that neighbouring blocks share a tile column in, for the L2. With K = 256 grouping gains nothing.
constexpr unsigned unrolled_group(int k) { return k <= 256 ? 1 : 4; }

/// Whether a plain product of that K is cut into whole tiles of 64 x columns, and its strides fit 32 bits. `problem` in
/// the form in which D is row-major.
inline bool cuts_whole(const Problem& problem, int columns, int k) {
  const auto fits = [](const MatrixLayout& layout) {
    return 2 * std::max(layout.rows, layout.columns) * layout.leading_dimension() <= INT32_MAX;
  };
  return has_whole_chunks(problem) && problem.k == k && problem.m % (kUnrolledRows * unrolled_group(k)) == 0 &&
         problem.n % columns == 0 && fits(problem.a) && fits(problem.b) && fits(problem.d);
}

/// A block per tile of 64 x columns. m and n in the form in which D is row-major.
inline Extent unrolled_grid(const Problem& problem, int columns, int k) {
  const unsigned group = unrolled_group(k);
  return {static_cast<unsigned>(problem.n / columns) * group,
          static_cast<unsigned>(problem.m / (kUnrolledRows * group))};
}

}  // namespace tmaops::ops::gemm
