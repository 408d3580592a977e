// The published kernels compute in f16 throughout: which problems they take, and how far their results may be off.
#pragma once

#include <string_view>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Whether the variant rounds coordinates, weights and sums to f16.
bool computes_in_f16(std::string_view variant);

/// Relative error (Frobenius) that f16 arithmetic leaves in the output where neighbouring pixels are independent, which
/// is the worst case: smoother maps forgive errors of a coordinate.
double half_arithmetic_error(const Problem& problem);

namespace gpu {

inline constexpr int kHalfPoints = 8;       // of a level
inline constexpr int kHalfChannels = 32;    // of the one head
inline constexpr int kHalfLaneBits = 2;     // four threads with eight channels each
inline constexpr int kHalfMostSide = 2046;  // f16 counts pixels up to 2048

/// What the published kernels take.
Support supports_half_arithmetic(const Problem& problem);

}  // namespace gpu
}  // namespace tmaops::ops::ms_deform_attn
