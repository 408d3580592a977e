// What variants that read 16 bytes of channels per thread ask of a problem.
#pragma once

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// log2 of the threads that read one pixel of a head together, 16 bytes each; -1 when its channels are no such power of
/// two.
int lane_bits(const Problem& problem);

/// Rows of channels at multiples of 16 bytes, and no more levels and points than such variants count.
Support supports_vector_rows(const Problem& problem);

/// What supports_vector_rows() takes, of calls without fused steps.
Support supports_vectors(const Problem& problem);

}  // namespace tmaops::ops::ms_deform_attn::gpu
