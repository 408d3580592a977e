// How many threads a call on the CPU is worth.
#pragma once

#include "core/parallel.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// Microseconds that one thread takes, about, for a multiplication and an addition of f32.
inline constexpr double kProduct = 0.04e-3;

inline int call_threads(const Problem& problem) {
  return threads_for(kProduct * static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                     static_cast<double>(problem.n) * static_cast<double>(problem.k));
}

}  // namespace tmaops::ops::gemm
