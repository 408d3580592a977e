// What simd_packed knows about a call before it starts, and about the image it works on.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "ops/ms_deform_attn/forward/shared/simd_job.hpp"
#include "ops/ms_deform_attn/shared/aligned_buffer.hpp"
#include "ops/ms_deform_attn/shared/head_maps.hpp"
#include "ops/ms_deform_attn/shared/query_order.hpp"

namespace tmaops::ops::ms_deform_attn::simd_packed {

/// Channels come in blocks of this many: whole vectors on every target.
inline constexpr std::int64_t kChannelBlock = 16;
/// Of a head in almost every model: the sums are compiled for this many, too.
inline constexpr std::int64_t kUsualChannels = 32;

/// How this processor works on vectors of 512 bits, where it has them and we know.
/// - halves: Zen 4 (the only one of AMD's family 19h with AVX-512). Conversions from f16 to half a register take half
///   as long there, and the sums 2.7 cycles per corner instead of 4.6; f32 and bf16 gain nothing.
/// - whole: Intel. 16-bit values cost twice the vector operations of f32, which waits for loads.
/// (AMD's Zen 5 has not been measured.)
enum class WideVectors { none_known, halves, whole };
inline WideVectors wide_vectors() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx512f")) return WideVectors::none_known;
  if (__builtin_cpu_is("amdfam19h")) return WideVectors::halves;
  if (__builtin_cpu_is("intel")) return WideVectors::whole;
#endif
  return WideVectors::none_known;
}

/// 16-bit channels beside widened levels come in blocks of this many, see simd_paired.hpp.
inline constexpr std::int64_t kPairedBlock = 2 * kChannelBlock;
/// What pairs are to be multiplied by, to be the values they stand for.
inline constexpr float kPairScale = 0x1p112F;

/// What maps of 16-bit values hold, see simd_paired.hpp.
struct MapForm {
  std::size_t widened = 0;  // levels, the last ones, that hold f32; 0 for maps of the value's own type
  bool coded = false;       // the other levels hold coded pairs of f16

  constexpr MapForm() = default;
  constexpr MapForm(std::size_t last_levels, bool pairs) : widened(last_levels), coded(pairs && last_levels != 0) {}
};

/// How many levels maps of 16-bit values hold as f32.
inline std::size_t widened_levels(const Problem& problem) {
  // Twice the bytes for an eighth of the pixels at most: what a tile samples stays in the L2 cache. Half of the points
  // at most: others want one of f32 each, more of those gain nothing.
  constexpr std::int64_t kLargestShare = 8;
  if (size_of(problem.value_dtype) != 2 || problem.channels % kPairedBlock != 0) return 0;
  std::int64_t area = 0;
  std::int64_t points = 0;
  std::size_t count = 0;
  for (; count + 1 < problem.levels.size(); ++count) {
    const Level& level = problem.levels[problem.levels.size() - 1 - count];
    area += level.height * level.width;
    points += level.points;
    if (area * kLargestShare > problem.length || points * 2 > problem.points) break;
  }
  return HeadMapLayout(problem, count).fits(problem.channels) ? count : 0;
}

/// The form that takes least on this processor.
inline MapForm best_form(const Problem& problem) {
  // Coded pairs win on Zen 4. On Zen 3, whose vectors have 256 bits, they cost a fifth, and widened levels gain
  // nothing.
  const WideVectors vectors = wide_vectors();
  if (vectors == WideVectors::halves && problem.value_dtype == DType::f16) return {widened_levels(problem), true};
  if (vectors == WideVectors::whole) return {widened_levels(problem), false};
  return {};
}

/// What a point needs to know about its level and its place in a map, as vectors of points load it: fields of kMaxLanes
/// entries each for one group of points after another, padded with points of the last level.
class PointGeometry {
 public:
  enum Field : std::size_t {
    kWidth,
    kHeight,
    kFirst,  // pixel (0, 0) of the level in a map, plus kCounted
    kPitch,  // pixels from row to row
    kStep,   // pixels from pixel to pixel
    kScale,  // of the weights
    kFields
  };
  /// From 2^23 on, f32 are whole numbers that count up in their lower bits.
  static constexpr float kCounted = 0x1p23F;

  /// `coded`: the levels that are not widened hold coded pairs.
  PointGeometry(const Problem& problem, const HeadMapLayout& layout, bool coded)
      : fields_((static_cast<std::size_t>(problem.points) + kMaxLanes - 1) / kMaxLanes * kMaxLanes * kFields) {
    std::size_t k = 0;
    const auto add = [&](std::size_t l) {
      const HeadMapLayout::LevelMap& map = layout.levels[l];
      float* const to = fields_.data() + at(k++);
      to[kWidth * kMaxLanes] = static_cast<float>(problem.levels[l].width);
      to[kHeight * kMaxLanes] = static_cast<float>(problem.levels[l].height);
      to[kFirst * kMaxLanes] = static_cast<float>(map.first) + kCounted;
      to[kPitch * kMaxLanes] = static_cast<float>(map.pitch);
      to[kStep * kMaxLanes] = static_cast<float>(map.step);
      to[kScale * kMaxLanes] = map.step == 1 && coded ? kPairScale : 1.0F;
    };
    for (std::size_t l = 0; l < problem.levels.size(); ++l)
      for (std::int64_t p = 0; p < problem.levels[l].points; ++p) add(l);
    while (k % kMaxLanes != 0) add(problem.levels.size() - 1);
  }

  /// The fields of the points from `k` on, kMaxLanes apart.
  const float* of(std::size_t k) const { return fields_.data() + at(k); }

 private:
  static std::size_t at(std::size_t k) { return (k - k % kMaxLanes) * kFields + k % kMaxLanes; }
  AlignedBuffer<float> fields_;
};

/// What every thread reads.
struct PackedJob {
  PackedJob(const Problem& problem, const Arguments& arguments) : PackedJob(problem, arguments, best_form(problem)) {}
  PackedJob(const Problem& problem, const Arguments& arguments, MapForm of_maps)
      : direct(problem, arguments),
        form(of_maps),
        layout(direct.problem, form.widened),
        geometry(direct.problem, layout, form.coded),
        maps(static_cast<std::size_t>(problem.heads * layout.pixels * problem.channels) *
             size_of(problem.value_dtype)) {
    for (std::size_t l = 0; l < problem.levels.size(); ++l)
      row_step.insert(row_step.end(), static_cast<std::size_t>(problem.levels[l].points),
                      static_cast<std::int32_t>(layout.levels[l].pitch * problem.channels));
  }

  /// Points of the levels that are not widened.
  std::size_t large_points() const {
    std::int64_t points = 0;
    for (std::size_t l = 0; l + form.widened < direct.problem.levels.size(); ++l)
      points += direct.problem.levels[l].points;
    return static_cast<std::size_t>(points);
  }

  ForwardJob direct;
  MapForm form;
  HeadMapLayout layout;
  PointGeometry geometry;
  std::vector<std::int32_t> row_step;  // of a point: elements from row to row
  bool halved_vectors = wide_vectors() == WideVectors::halves;
  /// The copies of one image, kept from run to run, because fresh memory costs page faults.
  mutable AlignedBuffer<unsigned char> maps;
  mutable std::mutex maps_in_use{};
};

/// Runs the call.
void run(const PackedJob& job);

/// One image's share of a call.
struct ImageJob {
  const PackedJob& job;
  const QueryOrder& order;
  std::int64_t image;
  const void* maps;  // [head][pixel][channel]
};

}  // namespace tmaops::ops::ms_deform_attn::simd_packed
