// The published kernels compute in f16 throughout, and take the problems that they were published with.
#pragma once

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

inline constexpr int kHalfPoints = 8;       // of a level
inline constexpr int kHalfChannels = 32;    // of the one head
inline constexpr int kHalfLaneBits = 2;     // four threads with eight channels each
inline constexpr int kHalfMostSide = 2046;  // f16 counts pixels up to 2048

/// What the published kernels take.
Support supports_half_arithmetic(const Problem& problem);

}  // namespace tmaops::ops::ms_deform_attn::gpu
