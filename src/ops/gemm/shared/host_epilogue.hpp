// What becomes of a tile of f32 accumulators, for the CPU variants.
#pragma once

#include <cstdint>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// D[batch, row.., column..] = act(alpha * accumulators + beta * C + bias) in f32, rounded once, for a tile of
/// rows x columns accumulators whose rows lie `pitch` elements apart. They may be D itself. Null ones stand for zeros
/// (K = 0).
void store_tile(const Problem& problem, const Arguments& arguments, std::int64_t batch, std::int64_t row,
                std::int64_t column, std::int64_t rows, std::int64_t columns, const float* accumulators,
                std::int64_t pitch);

}  // namespace tmaops::ops::gemm
