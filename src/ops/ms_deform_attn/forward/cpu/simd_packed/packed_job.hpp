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

/// What a point needs to know about its level and its place in a map, as vectors of points load it: fields of kMaxLanes
/// entries each for one group of points after another, padded with points of the last level.
class PointGeometry {
 public:
  enum Field : std::size_t {
    kWidth,
    kHeight,
    kFirst,  // pixel (0, 0) of the level in a map, plus kCounted
    kPitch,  // pixels from row to row
    kFields
  };
  /// From 2^23 on, f32 are whole numbers that count up in their lower bits.
  static constexpr float kCounted = 0x1p23F;

  PointGeometry(const Problem& problem, const HeadMapLayout& layout)
      : fields_((static_cast<std::size_t>(problem.points) + kMaxLanes - 1) / kMaxLanes * kMaxLanes * kFields) {
    std::size_t k = 0;
    const auto add = [&](std::size_t l) {
      const HeadMapLayout::LevelMap& map = layout.levels[l];
      float* const to = fields_.data() + at(k++);
      to[kWidth * kMaxLanes] = static_cast<float>(problem.levels[l].width);
      to[kHeight * kMaxLanes] = static_cast<float>(problem.levels[l].height);
      to[kFirst * kMaxLanes] = static_cast<float>(map.first) + kCounted;
      to[kPitch * kMaxLanes] = static_cast<float>(map.pitch);
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
  PackedJob(const Problem& problem, const Arguments& arguments)
      : direct(problem, arguments),
        layout(direct.problem),
        geometry(direct.problem, layout),
        maps(static_cast<std::size_t>(problem.heads * layout.pixels * problem.channels) *
             size_of(problem.value_dtype)) {
    for (std::size_t l = 0; l < problem.levels.size(); ++l)
      row_step.insert(row_step.end(), static_cast<std::size_t>(problem.levels[l].points),
                      static_cast<std::int32_t>(layout.levels[l].pitch * problem.channels));
  }

  ForwardJob direct;
  HeadMapLayout layout;
  PointGeometry geometry;
  std::vector<std::int32_t> row_step;  // of a point: elements from row to row
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
