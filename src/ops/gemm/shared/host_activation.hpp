// The activations on rows of f32, for the CPU variants.
#pragma once

#include <cstdint>

#include "tmaops/gemm.hpp"

namespace tmaops::ops::gemm {

/// x[i] = activation(x[i]). The error is below 4e-7 max(1, |exact|), and below 1e-6 |exact| (silu) or 2e-5 |exact|
/// (gelu, far in the negative tail) for results that are normal numbers. NaN stays NaN, and silu and gelu of -infinity
/// are NaN, as their formulas have it.
void activate(Activation activation, float* x, std::int64_t count);

}  // namespace tmaops::ops::gemm
