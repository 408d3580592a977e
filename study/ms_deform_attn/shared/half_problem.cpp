#include "study/ms_deform_attn/shared/half_problem.hpp"

#include <algorithm>

#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

Support supports_half_arithmetic(const Problem& problem) {
  if (Support support = supports_vectors(problem); !support) return support;
  if (problem.value_dtype != DType::f16 || problem.location_dtype != DType::f16 || problem.weight_dtype != DType::f16)
    return Support::no("needs value, locations and weights in f16, as published");
  if (problem.heads != 1 || problem.channels != kHalfChannels)
    return Support::no("needs one head of 32 channels, as published");
  if (problem.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling");
  for (const Level& level : problem.levels) {
    if (level.points != kHalfPoints) return Support::no("needs 8 points in every level, as published");
    if (std::max(level.height, level.width) > kHalfMostSide)
      return Support::no("needs levels of at most " + std::to_string(kHalfMostSide) +
                         " pixels a side: f16 counts no further than 2048");
  }
  return Support::yes();
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
