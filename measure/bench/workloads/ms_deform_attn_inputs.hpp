// Random locations, weights and masks as detectors have them.
#pragma once

#include <cstdint>

#include "bench/workloads/ms_deform_attn_cases.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Where the case has reference points, these first, and the locations are offsets from them.
void fill_locations(const MsDeformAttnCase& c, const TensorView& locations, const TensorView& reference_points,
                    std::uint64_t seed);

/// A softmax of normal numbers over the levels and points of a query and head, or, where the case has the softmax
/// fused, these numbers.
void fill_attention_weights(const MsDeformAttnCase& c, const TensorView& weights, std::uint64_t seed);

/// Images smaller than their batch: what lies right of, or below, a part of the width and height is padding.
void fill_padding_mask(const MsDeformAttnCase& c, const TensorView& mask, std::uint64_t seed);

}  // namespace tmaops::bench
