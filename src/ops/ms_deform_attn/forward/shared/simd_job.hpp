// What the SIMD variant knows about a call before it starts: built once per plan, read by every thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/ms_deform_attn/shared/point_rows.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Lanes of the widest vector: tables and scratch rows are padded by as many elements.
inline constexpr std::size_t kMaxLanes = 16;

/// What a point needs to know about its level, one entry per point and padding, so that vectors of points load it.
struct PointTables {
  std::vector<float> width;
  std::vector<float> height;
  std::vector<std::int32_t> pitch;  // pixels from row to row
  std::vector<std::int32_t> start;

  explicit PointTables(const Problem& problem) {
    for (const Level& level : problem.levels)
      for (std::int64_t p = 0; p < level.points; ++p) add(level);
    for (std::size_t i = 0; i < kMaxLanes; ++i) add(problem.levels.back());
  }

 private:
  void add(const Level& level) {
    width.push_back(static_cast<float>(level.width));
    height.push_back(static_cast<float>(level.height));
    pitch.push_back(static_cast<std::int32_t>(level.pitch));
    start.push_back(static_cast<std::int32_t>(level.start));
  }
};

struct ForwardJob {
  ForwardJob(const Problem& p, const Arguments& a)
      : problem(p),
        arguments(a),
        locations(p, a.sampling_locations, 2),
        weights(p, a.attention_weights, 1),
        tables(p) {}

  /// What says where a query looks: its reference points where there are some, else its locations.
  const ConstTensorView& places() const {
    return problem.reference_components == 0 ? arguments.sampling_locations : arguments.reference_points;
  }

  Problem problem;
  Arguments arguments;
  PointRows locations;
  PointRows weights;
  PointTables tables;
};

namespace simd {

Support supports(const Problem& problem, const DeviceInfo& device);

/// Heads [first, last).
struct HeadRange {
  std::int64_t first;
  std::int64_t last;
};

/// The queries order[begin, end), counted n * queries + q, of these heads, on the calling thread.
void forward(const ForwardJob& job, std::span<const std::int64_t> order, std::int64_t begin, std::int64_t end,
             HeadRange heads);

/// Copies pixels [begin, end) of image n and head m so that the channels of a pixel lie next to each other.
void copy_pixels(const ForwardJob& job, std::int64_t n, std::int64_t m, std::int64_t begin, std::int64_t end, void* to);

/// The whole call, whatever the strides of the value.
void run(const ForwardJob& job);

}  // namespace simd
}  // namespace tmaops::ops::ms_deform_attn
