// What the CPU variants share: what becomes of a tile of f32 accumulators, and how many threads a call is worth.
#pragma once

#include <cstdint>

#include "core/parallel.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// D[batch, row.., column..] = act(alpha * accumulators + beta * C + bias) in f32, rounded once, for a tile of
/// rows x columns accumulators whose rows lie `pitch` elements apart. They may be D itself. Null ones stand for zeros
/// (K = 0).
void store_tile(const Problem& problem, const Arguments& arguments, std::int64_t batch, std::int64_t row,
                std::int64_t column, std::int64_t rows, std::int64_t columns, const float* accumulators,
                std::int64_t pitch);

/// Microseconds that one thread takes, about, for a multiplication and an addition of f32.
inline constexpr double kProduct = 0.04e-3;
inline int call_threads(const Problem& problem) {
  return threads_for(kProduct * static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                     static_cast<double>(problem.n) * static_cast<double>(problem.k));
}

}  // namespace tmaops::ops::gemm
