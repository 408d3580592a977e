// Maps of 16-bit values with widened levels on any machine: simd_packed takes them by itself on Zen 4 (coded) and Intel
// alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "ops/ms_deform_attn/forward/cpu/simd_packed/packed_job.hpp"

namespace tmaops::test {

/// Null in a build without Highway.
inline const auto* packed_variant() {
  const auto table = ops::ms_deform_attn::variants();
  const auto found = std::find_if(table.begin(), table.end(), [](const auto& v) { return v.name == "simd_packed"; });
  return found != table.end() && found->built() ? &*found : nullptr;
}

/// Runs simd_packed, which must be built and take the problem; returns how many levels were widened. `coded`: f16
/// alone.
inline std::size_t forward_in_pairs(const ops::ms_deform_attn::Problem& problem,
                                    const ops::ms_deform_attn::Arguments& arguments, bool coded) {
  namespace packed = ops::ms_deform_attn::simd_packed;
  const packed::PackedJob job(problem, arguments, packed::MapForm(packed::widened_levels(problem), coded));
  packed::run(job);
  return job.form.widened;
}

}  // namespace tmaops::test
