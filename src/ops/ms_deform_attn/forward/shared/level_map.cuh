// The tensor map of a level, for the variants that TMA brings pixels to.
#pragma once

#include "ops/ms_deform_attn/problem.hpp"
#include "tma/driver.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Rank 5, innermost first: channels, heads, columns, rows, images. `box` in the same order.
inline tma::TensorMap level_map(const Problem& problem, const ConstTensorView& value, const Level& level,
                                std::vector<std::int64_t> box) {
  const auto bytes = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(size_of(problem.value_dtype));
  };
  const std::int64_t pixel = bytes(value.strides[1]);
  tma::TensorMapSpec spec;
  spec.dtype = tma::element_type(problem.value_dtype);
  spec.address = reinterpret_cast<std::uintptr_t>(value.data) + static_cast<std::uintptr_t>(level.start * pixel);
  spec.dims = {problem.channels, problem.heads, level.width, level.height, problem.batch};
  spec.strides = {bytes(value.strides[2]), pixel, level.pitch * pixel, bytes(value.strides[0])};
  spec.box = std::move(box);
  spec.l2_promotion = tma::L2Promotion::b128;
  return tma::encode_valid(spec, problem.device.index);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
