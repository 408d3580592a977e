// The tensor map of a level, for the variants that TMA brings pixels to.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/ms_deform_attn/problem.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Rank 5, innermost first: channels, heads, columns, rows, images. `box` in the same order.
tma::TensorMap level_map(const Problem& problem, const ConstTensorView& value, const Level& level,
                         std::vector<std::int64_t> box);

}  // namespace tmaops::ops::ms_deform_attn::gpu
