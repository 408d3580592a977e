// The points of a query and head as simd_packed sums them. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_RECORDS) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_RECORDS
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_RECORDS
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_RECORDS
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "ops/ms_deform_attn/forward/cpu/simd_packed/packed_job.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_elements.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = simd::HWY_NAMESPACE;

/// The corners of one point: where their channels start, and attention weight times bilinear weight. kChannels: of a
/// pixel, or 0 for any number. Two plain addresses and constants beyond them take less than an address for each
/// corner.
template <class Stored, std::int64_t kChannels>
struct Corners {
  const Stored* HWY_RESTRICT upper;
  const Stored* HWY_RESTRICT lower;
  const float* HWY_RESTRICT weights;
  std::int64_t channels;

  HWY_INLINE const Stored* pixel(std::size_t corner) const {
    return (corner < 2 ? upper : lower) + (corner % 2 == 0 ? 0 : kChannels == 0 ? channels : kChannels);
  }
  HWY_INLINE float weight(std::size_t corner) const { return weights[corner * kMaxLanes]; }
};

/// The points of one query and head: offset of the upper left corner's first channel in the map, and the weights of the
/// corners, kMaxLanes points after one another.
struct Records {
  static constexpr std::size_t kCorners = 4;
  std::int32_t* HWY_RESTRICT offset;
  float* HWY_RESTRICT weight;
  std::size_t count;
  std::int64_t channels;
  const std::int32_t* HWY_RESTRICT row_step;

  /// The weights of point first + k, `first` a multiple of kMaxLanes and k less, the corners kMaxLanes apart. A
  /// constant leaves registers for addresses.
  float* weights_of(std::size_t first, std::size_t k) const { return weight + first * kCorners + k; }
};

/// Records whose pixels are known to have kChannels, or 0.
template <std::int64_t kChannels>
struct RecordsOf : Records {
  static constexpr std::size_t kRun = kMaxLanes;
  /// Of point k of the run that starts at point `first`, a multiple of kRun.
  template <class Stored>
  HWY_INLINE Corners<Stored, kChannels> corners(const Stored* HWY_RESTRICT map, std::size_t first,
                                                std::size_t k) const {
    const Stored* upper = vectors::PlainBase(map + offset[first + k]);
    return {.upper = upper,
            .lower = vectors::PlainBase(upper + row_step[first + k]),
            .weights = weights_of(first, k),
            .channels = channels};
  }
};

/// Fills the records from padded rows; false when an attention weight is infinite or NaN.
template <class Element>
bool MakeRecords(const PackedJob& job, const Element* HWY_RESTRICT xy, const Element* HWY_RESTRICT attention,
                 Records& records) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto half = hn::Set(d, 0.5F);
  const auto outside = hn::Set(d, -1.0F);
  const auto counted = hn::BitCast(di, hn::Set(d, PointGeometry::kCounted));
  const auto channels = hn::Set(di, static_cast<std::int32_t>(records.channels));
  bool finite = true;
  for (std::size_t k = 0; k < records.count; k += hn::Lanes(d)) {
    const float* HWY_RESTRICT geometry = job.geometry.of(k);
    const auto field = [&](PointGeometry::Field which) { return hn::LoadU(d, geometry + which * kMaxLanes); };
    hn::Vec<decltype(d)> x;
    hn::Vec<decltype(d)> y;
    vectors::LoadCoordinates(d, xy + 2 * k, x, y);
    // A point off the map, or at NaN, is moved to the zeros around it: the upper left corner is one, the others weigh
    // 0.
    const auto width = field(PointGeometry::kWidth);
    const auto height = field(PointGeometry::kHeight);
    const auto u = hn::Min(hn::Max(hn::MulSub(x, width, half), outside), width);
    const auto t = hn::Min(hn::Max(hn::MulSub(y, height, half), outside), height);
    const auto weight = vectors::LoadF32(d, attention + k);
    finite = hn::AllTrue(d, hn::IsFinite(weight)) && finite;
    const auto left = hn::Floor(u);
    const auto top = hn::Floor(t);
    const auto a = hn::Sub(u, left);
    const auto b = hn::Sub(t, top);
    // Exact: a map has less than 2^23 pixels.
    const auto pixel = hn::MulAdd(top, field(PointGeometry::kPitch), hn::Add(left, field(PointGeometry::kFirst)));
    hn::StoreU(hn::Mul(hn::Sub(hn::BitCast(di, pixel), counted), channels), di, records.offset + k);
    const auto lower = hn::Mul(weight, b);
    const auto upper = hn::Sub(weight, lower);
    const auto upper_right = hn::Mul(upper, a);
    const auto lower_right = hn::Mul(lower, a);
    float* out = records.weights_of(k - k % kMaxLanes, k % kMaxLanes);
    hn::StoreU(hn::Sub(upper, upper_right), d, out);
    hn::StoreU(upper_right, d, out + kMaxLanes);
    hn::StoreU(hn::Sub(lower, lower_right), d, out + 2 * kMaxLanes);
    hn::StoreU(lower_right, d, out + 3 * kMaxLanes);
  }
  return finite;
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
