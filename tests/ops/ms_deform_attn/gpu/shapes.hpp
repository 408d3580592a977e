// Random problems of multi-scale deformable attention for the GPU variants: what they are fast at, and everything else.
#pragma once

#include <random>

#include "gpu/support.hpp"
#include "ops/ms_deform_attn/case.hpp"
#include "support/random_choice.hpp"

namespace tmaops::test {

/// The names that ask for a variant: one for each of its configurations, or the variant's own where it refuses.
template <class Problem, class Arguments, class Config>
std::vector<std::string> names_of(const Variant<Problem, Arguments, Config>& variant, const Problem& problem) {
  const DeviceInfo& device = device_info({DeviceType::cuda, 0});
  if (!try_variant(variant, problem, device)) return {std::string(variant.name)};
  std::vector<std::string> names;
  for (const Config& config : configs_of(variant, problem, device))
    names.push_back(Choice<Problem, Arguments, Config>{&variant, config}.name());
  return names;
}

inline Shape random_gpu_shape(std::mt19937_64& random) {
  const auto pick = picker(random);
  const auto chance = chances(random);
  Shape shape;
  shape.batch = pick(1, 2, 3);
  shape.heads = pick(1, 1, 2, 5, 8);
  shape.channels = pick(1, 3, 7, 8, 16, 16, 24, 30, 32, 32, 32, 64, 64, 71, 128, 256);
  shape.queries = kOnExecutor ? pick(1, 2, 7, 33) : pick(1, 2, 7, 33, 64, 100, 259);
  shape.points = pick(1, 2, 3, 4, 4, 5, 8, 8, 11);
  shape.levels.clear();
  const std::int64_t levels = pick(1, 2, 3, 4, 4, 5, 17);
  for (std::int64_t l = 0; l < levels; ++l)
    shape.levels.push_back({pick(1, 2, 3, 4, 8, 16, 21, 40), pick(1, 2, 4, 5, 8, 16, 27, 50)});
  if (chance(5)) {
    for (std::int64_t l = 0; l < levels; ++l) shape.ragged.push_back(pick(0, 1, 3, 4, 8));
    shape.ragged.front() += 1;
  }
  shape.value_dtype = pick(DType::f32, DType::f16, DType::bf16);
  shape.location_dtype = chance(2) ? shape.value_dtype : pick(DType::f32, DType::f16, DType::bf16, DType::f64);
  shape.weight_dtype = chance(2) ? shape.location_dtype : pick(DType::f32, DType::f16, DType::bf16, DType::f64);
  shape.sampling = chance(5) ? Sampling::nearest : Sampling::bilinear;
  shape.strided = chance(4);
  shape.f32_output = chance(6);
  return shape;
}

}  // namespace tmaops::test
