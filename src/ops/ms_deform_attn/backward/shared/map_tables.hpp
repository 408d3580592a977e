// Where the levels lie in the maps of a head that the CPU backward passes work on, as their kernels load it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/ms_deform_attn/shared/head_maps.hpp"

namespace tmaops::ops::ms_deform_attn_backward {

/// Channels of a map are padded to this many, with zeros: one vector of the widest target.
inline constexpr std::int64_t kChannelBlock = 16;
/// Tables and rows of points are padded by as many elements.
inline constexpr std::size_t kPointPadding = 16;

/// Where the levels lie in a map, in elements; one entry per point (and padding) as the kernels load it.
template <class T>
struct MapTables {
  std::int64_t channels = 0;  // padded
  ms_deform_attn::HeadMapLayout layout;
  std::int64_t size = 0;  // of a map, a dummy corner for skipped points at its end
  std::vector<T> width;
  std::vector<T> height;
  std::vector<std::int32_t> base;   // of pixel (0, 0)
  std::vector<std::int32_t> pitch;  // from row to row
  std::int32_t dummy = 0;

  explicit MapTables(const ms_deform_attn::Problem& problem)
      : channels((problem.channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock),
        layout(problem),
        dummy(static_cast<std::int32_t>(layout.pixels * channels)) {
    std::int64_t widest = 0;
    for (std::size_t l = 0; l < problem.levels.size(); ++l) {
      const ms_deform_attn::HeadMapLayout::LevelMap& map = layout.levels[l];
      for (std::int64_t p = 0; p < problem.levels[l].points; ++p) add(problem.levels[l], map.first, map.pitch);
      widest = std::max(widest, map.pitch);
    }
    size = (layout.pixels + widest + 2) * channels;
    for (std::size_t i = 0; i < kPointPadding; ++i) add(problem.levels.back(), 0, 0);
  }
  /// Whether offsets into a map fit in 32 bits.
  static bool fits(const ms_deform_attn::Problem& problem) {
    std::int64_t pixels = 0;
    std::int64_t elements = 0;
    for (const ms_deform_attn::Level& level : problem.levels) {
      std::int64_t area = 0;
      if (level.height >= 1 << 24 || level.width >= 1 << 24) return false;
      area = (level.height + 3) * (level.width + 3);
      if (__builtin_add_overflow(pixels, area, &pixels)) return false;
    }
    return !__builtin_mul_overflow(pixels + 2, problem.channels + kChannelBlock, &elements) && elements < 1LL << 31;
  }

 private:
  void add(const ms_deform_attn::Level& level, std::int64_t first_pixel, std::int64_t pitch_pixels) {
    width.push_back(static_cast<T>(level.width));
    height.push_back(static_cast<T>(level.height));
    base.push_back(static_cast<std::int32_t>(first_pixel * channels));
    pitch.push_back(static_cast<std::int32_t>(pitch_pixels * channels));
  }
};

}  // namespace tmaops::ops::ms_deform_attn_backward
