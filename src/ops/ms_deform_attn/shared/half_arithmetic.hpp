// How far the result of a variant may be off that computes in f16 throughout.
#pragma once

#include <string_view>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Whether the variant rounds coordinates, weights and sums to f16: `half` in its line.
bool computes_in_f16(std::string_view variant);

/// Relative error (Frobenius) that f16 arithmetic leaves in the output where neighbouring pixels are independent, which
/// is the worst case: smoother maps forgive errors of a coordinate.
double half_arithmetic_error(const Problem& problem);

}  // namespace tmaops::ops::ms_deform_attn
