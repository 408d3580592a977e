// The activations on rows of f32, for the CPU variants.
#pragma once

#include <cstdint>

#include "tmaops/gemm.hpp"

namespace tmaops::ops::gemm {

/// x[i] = activation(x[i]). Error below 1e-6 relative to the exact value for results that are normal numbers; NaN stays
/// NaN, and silu and gelu of -infinity are NaN, as their formulas have it.
void activate(Activation activation, float* x, std::int64_t count);

}  // namespace tmaops::ops::gemm
