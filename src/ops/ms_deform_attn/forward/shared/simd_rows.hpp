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

#include "ops/ms_deform_attn/forward/shared/simd_elements.hpp"
#include "ops/ms_deform_attn/shared/point_rows.hpp"
#include "ops/ms_deform_attn/shared/prefetch.hpp"

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

/// The rows [n, q, m] of locations or weights, padded to whole vectors.
class RowReader {
 public:
  RowReader(const PointRows& rows, std::size_t length, std::size_t padded, float padding)
      : rows_(rows),
        length_(length),
        padded_(padded),
        padding_(padding),
        dtype_(rows.tensor().dtype),
        dense_(rows.dense()),
        bytes_(length * size_of(dtype_)),
        data_(static_cast<const char*>(rows.tensor().data)) {
    for (std::size_t i = 0; i < 3; ++i)
      step_[i] = rows.tensor().strides[i] * static_cast<std::int64_t>(size_of(dtype_));
  }

  const char* address(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return data_ + n * step_[0] + q * step_[1] + m * step_[2];
  }
  /// Whether the caller's own rows are whole vectors of T.
  template <class T>
  bool holds() const {
    return dense_ && dtype_ == dtype_of<T> && length_ == padded_;
  }
  void ask_for(std::int64_t n, std::int64_t q, std::int64_t m) const { prefetch(address(n, q, m), bytes_); }

  /// The caller's own row where that already fits, else a copy in `scratch`.
  const float* read(std::int64_t n, std::int64_t q, std::int64_t m, float* HWY_RESTRICT scratch) const {
    if (holds<float>()) return reinterpret_cast<const float*>(address(n, q, m));
    if (dense_ && dtype_ != DType::f64)
      with_short_type(dtype_, [&]<class Stored>(Stored*) {
        ConvertRow(reinterpret_cast<const Stored*>(address(n, q, m)), length_, scratch);
      });
    else
      rows_.load(n, q, m, scratch);
    std::fill(scratch + length_, scratch + padded_, padding_);
    return scratch;
  }

 private:
  const PointRows& rows_;
  std::size_t length_;
  std::size_t padded_;
  float padding_;
  DType dtype_;
  bool dense_;
  std::size_t bytes_;
  const char* data_;
  std::int64_t step_[3];  // bytes
};

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
