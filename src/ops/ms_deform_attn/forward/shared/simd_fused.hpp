// Rows of sampling points as whole vectors of f32, and the steps that a call fuses in front of the sums: offsets become
// locations, and logits become weights. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_FUSED) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_FUSED
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_FUSED
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_FUSED
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/ms_deform_attn/forward/shared/simd_elements.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_job.hpp"
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

/// The softmax of `padded` logits of a query and head, in place or not.
inline void TakeSoftmax(const float* logits, std::size_t padded, float* weights) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto largest = hn::LoadU(d, logits);
  for (std::size_t k = lanes; k < padded; k += lanes) largest = hn::Max(largest, hn::LoadU(d, logits + k));
  largest = hn::MaxOfLanes(d, largest);
  auto sum = hn::Zero(d);
  for (std::size_t k = 0; k < padded; k += lanes) {
    const auto below = hn::Sub(hn::LoadU(d, logits + k), largest);
    // Exp makes 0 of NaN.
    const auto part = hn::IfThenElse(hn::IsNaN(below), below, hn::Exp(d, below));
    hn::StoreU(part, d, weights + k);
    sum = hn::Add(sum, part);
  }
  const auto scale = hn::Div(hn::Set(d, 1.0F), hn::SumOfLanes(d, sum));
  for (std::size_t k = 0; k < padded; k += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, weights + k), scale), d, weights + k);
}

/// Reads the points of a query and head, and does the steps that the call fuses.
class PointReader {
 public:
  /// Rows are padded to `padded` points: NaN for locations, weights of 0.
  PointReader(const ForwardJob& job, std::size_t padded)
      : problem_(job.problem),
        reference_(job.arguments.reference_points),
        offset_scale_(static_cast<float>(job.arguments.offset_scale)),
        points_(static_cast<std::size_t>(job.problem.points)),
        padded_(padded),
        locations_(job.locations, 2 * points_, 2 * padded, std::numeric_limits<float>::quiet_NaN()),
        weights_(job.weights, points_, padded, job.problem.softmax ? -std::numeric_limits<float>::infinity() : 0.0F),
        steps_(job.problem.reference_components == 0 ? 0 : job.problem.levels.size()) {
    for (std::size_t l = 0; l < steps_.size(); ++l)
      steps_[l].scale = {1 / static_cast<float>(problem_.levels[l].width),
                         1 / static_cast<float>(problem_.levels[l].height)};
  }

  void ask_for(std::int64_t n, std::int64_t q, std::int64_t m) const {
    locations_.ask_for(n, q, m);
    weights_.ask_for(n, q, m);
    if (!steps_.empty())
      prefetch(static_cast<const char*>(reference_.data) +
                   head_offset(reference_, n, q, 0) * static_cast<std::int64_t>(size_of(reference_.dtype)),
               1);
  }
  /// Whether the caller's own rows of T are what locations() and weights() would give.
  template <class T>
  bool holds() const {
    return steps_.empty() && !problem_.softmax && locations_.holds<T>() && weights_.holds<T>();
  }
  template <class T>
  const T* own_locations(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return reinterpret_cast<const T*>(locations_.address(n, q, m));
  }
  template <class T>
  const T* own_weights(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return reinterpret_cast<const T*>(weights_.address(n, q, m));
  }

  /// x, y of every point: the caller's own row, or in `scratch`.
  const float* locations(std::int64_t n, std::int64_t q, std::int64_t m, float* scratch) {
    const float* row = locations_.read(n, q, m, scratch);
    if (steps_.empty()) return row;
    aim(n, q);
    add_reference(row, scratch);
    return scratch;
  }
  /// The weight of every point, in the same way.
  const float* weights(std::int64_t n, std::int64_t q, std::int64_t m, float* scratch) const {
    const float* row = weights_.read(n, q, m, scratch);
    if (!problem_.softmax) return row;
    TakeSoftmax(row, padded_, scratch);
    return scratch;
  }

 private:
  /// From an offset to a location on one level: x, y of the reference point, and what offsets are multiplied by.
  struct Step {
    std::array<float, 2> base;
    std::array<float, 2> scale;
  };

  /// Makes the steps of a query, which its heads share.
  void aim(std::int64_t n, std::int64_t q) {
    if (n == n_ && q == q_) return;
    n_ = n;
    q_ = q;
    with_float_type(reference_.dtype, [&]<class Stored>(Stored*) {
      const Stored* from = static_cast<const Stored*>(reference_.data) + head_offset(reference_, n, q, 0);
      const std::int64_t axis = reference_.strides[3];
      for (std::size_t l = 0; l < steps_.size(); ++l, from += reference_.strides[2]) {
        const Level& level = problem_.levels[l];
        Step& step = steps_[l];
        step.base = {convert<float>(from[0]), convert<float>(from[axis])};
        if (problem_.reference_components == 4) {
          const float scale = offset_scale_ / static_cast<float>(level.points);
          step.scale = {convert<float>(from[2 * axis]) * scale, convert<float>(from[3 * axis]) * scale};
        }
      }
    });
  }
  /// In place or not; the padding, which is there when the row is a copy, stays.
  void add_reference(const float* offsets, float* xy) const {
    const hn::CappedTag<float, 8> d;  // four points
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      const auto& [base, scale] = steps_[l];
      std::int64_t left = 2 * problem_.levels[l].points;
      if (lanes % 2 == 0) {
        const auto bases = hn::OddEven(hn::Set(d, base[1]), hn::Set(d, base[0]));
        const auto scales = hn::OddEven(hn::Set(d, scale[1]), hn::Set(d, scale[0]));
        for (; left >= lanes; left -= lanes, offsets += lanes, xy += lanes)
          hn::StoreU(hn::MulAdd(hn::LoadU(d, offsets), scales, bases), d, xy);
      }
      for (; left > 0; left -= 2, offsets += 2, xy += 2) {
        xy[0] = base[0] + offsets[0] * scale[0];
        xy[1] = base[1] + offsets[1] * scale[1];
      }
    }
  }

  const Problem& problem_;
  ConstTensorView reference_;
  float offset_scale_;
  std::size_t points_;
  std::size_t padded_;
  RowReader locations_;
  RowReader weights_;
  std::vector<Step> steps_;  // of each level; none without reference points
  std::int64_t n_ = -1;      // whose steps they are
  std::int64_t q_ = -1;
};

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
