// Rows of sampling points as whole vectors of f32. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_ROWS
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_ROWS
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_ROWS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/ms_deform_attn/cpu/point_rows.hpp"
#include "ops/ms_deform_attn/cpu/simd_elements.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Stored>
void ConvertRow(const Stored* from, std::size_t length, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= length; i += lanes) hn::StoreU(LoadF32(d, from + i), d, to + i);
  for (; i < length; ++i) to[i] = convert<float>(from[i]);
}

/// A row padded with NaN to whole vectors: the caller's own where that already fits.
inline const float* Row(const PointRows& rows, std::int64_t n, std::int64_t q, std::int64_t m, std::size_t length,
                 std::size_t padded, float* HWY_RESTRICT scratch) {
  const float* own = rows.direct<float>(n, q, m);
  if (own != nullptr && length == padded) return own;
  if (own != nullptr)
    std::copy_n(own, length, scratch);
  else if (const auto* halves = rows.direct<float16>(n, q, m))
    ConvertRow(halves, length, scratch);
  else if (const auto* brains = rows.direct<bfloat16>(n, q, m))
    ConvertRow(brains, length, scratch);
  else
    rows.load(n, q, m, scratch);
  std::fill(scratch + length, scratch + padded, std::numeric_limits<float>::quiet_NaN());
  return scratch;
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
