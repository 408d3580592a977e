// Copies of an image's value, one map per head: the head's pixels next to each other, which in the tensor lie M * D
// elements apart, with a border of zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/shared/prefetch.hpp"
#include "ops/ms_deform_attn/shared/query_order.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Where the pixels of a head lie in its map, counted in pixels. A row of a map is a zero and the row's own pixels; the
/// zero behind its last pixel is the first of the next row. Above and below each level lies a row of zeros, and at the
/// end so many that the corners of any sample within [-1, height] x [-1, width] lie in the map: those in row height + 1
/// weigh 0, but a wide level can reach far beyond small ones that follow it.
struct HeadMapLayout {
  struct LevelMap {
    std::int64_t first = 0;  // pixel (0, 0)
    std::int64_t pitch = 0;  // from row to row
  };
  /// A row to be filled: a zero and the pixels of S from `source` on, or only zeros where that is negative.
  struct Row {
    std::int64_t at = 0;
    std::int64_t pitch = 0;
    std::int64_t source = 0;
  };
  std::vector<LevelMap> levels;
  std::vector<Row> rows;
  std::int64_t pixels = 0;  // of one map

  explicit HeadMapLayout(const Problem& problem) {
    for (const Level& level : problem.levels) {
      const std::int64_t pitch = level.width + 1;
      levels.push_back({.first = pixels + pitch + 1, .pitch = pitch});
      for (std::int64_t i = -1; i <= level.height; ++i, pixels += pitch)
        rows.push_back(
            {.at = pixels, .pitch = pitch, .source = i < 0 || i == level.height ? -1 : level.start + i * level.pitch});
    }
    std::int64_t end = pixels;
    for (std::size_t l = 0; l < levels.size(); ++l)
      end = std::max(end, levels[l].first + (problem.levels[l].height + 2) * levels[l].pitch + 1);
    rows.push_back({.at = pixels, .pitch = end - pixels, .source = -1});
    pixels = end;
  }

  /// f32 with 2^23 added, and int32, must hold what they count.
  static constexpr std::int64_t kMaxPixels = 1LL << 23;
  /// Asks an upper bound of `pixels` that does not overflow.
  static bool fits(const Problem& problem) {
    std::int64_t sum = 2;
    for (const Level& level : problem.levels) {
      std::int64_t area = 0;
      if (__builtin_mul_overflow(level.height + 3, level.width + 1, &area) || area >= kMaxPixels) return false;
      sum += area;
      if (sum >= kMaxPixels) return false;
    }
    std::int64_t elements = 0;
    return !__builtin_mul_overflow(sum, problem.channels, &elements) && elements < 1LL << 31;
  }
};

/// Asks for the part of a map that the next tile of queries will sample and the present one does not, a little at each
/// query: the processor does not foresee these rows, and waits for each when it first touches one.
class MapPrefetcher {
 public:
  /// Of the levels [first, last).
  MapPrefetcher(const Problem& problem, const HeadMapLayout& layout, const QueryOrder& order, std::int64_t first,
                std::int64_t last)
      : problem_(problem),
        layout_(layout),
        order_(order),
        first_(static_cast<std::size_t>(first)),
        last_(static_cast<std::size_t>(last)) {}

  /// In place of the present tile where it lies on another map.
  static constexpr std::int64_t kNoTile = -1;

  /// Plans the step from one tile to another on a map whose pixels take `pixel_bytes`, in `steps` calls of step().
  void aim(const void* map, std::int64_t pixel_bytes, std::int64_t from, std::int64_t to, std::int64_t steps) {
    runs_.clear();
    std::int64_t lines = 0;
    for (std::size_t l = first_; l < last_; ++l) {
      const Window have = from == kNoTile ? Window{} : window(from, l);
      const Window want = window(to, l);
      for (std::int64_t row = want.top; row < want.bottom; ++row) {
        std::int64_t left = want.left;
        std::int64_t right = want.right;
        if (row >= have.top && row < have.bottom) {
          if (have.left <= left)
            left = std::max(left, have.right);
          else if (have.right >= right)
            right = std::min(right, have.left);
        }
        if (left >= right) continue;
        const HeadMapLayout::LevelMap& level = layout_.levels[l];
        const std::int64_t pixel = level.first + row * level.pitch + left;
        const char* start = static_cast<const char*>(map) + pixel * pixel_bytes;
        const std::int64_t bytes = (right - left) * pixel_bytes;
        runs_.push_back({start, start + bytes});
        lines += bytes / static_cast<std::int64_t>(kCacheLine) + 1;
      }
    }
    per_step_ = (lines + steps - 1) / std::max<std::int64_t>(steps, 1);
    run_ = 0;
  }
  void step() {
    for (std::int64_t i = 0; i < per_step_ && run_ < runs_.size(); ++i) {
      Run& run = runs_[run_];
      prefetch_line(run.at);
      run.at += kCacheLine;
      if (run.at >= run.end) ++run_;
    }
  }

 private:
  /// Points lie this many pixels of their level around a query's own place, or are fetched when they are needed:
  /// detectors' offsets have a standard deviation of 2 to 4 pixels. Between 4 and 12 the time hardly changes.
  static constexpr std::int64_t kReach = 8;

  struct Window {
    std::int64_t left = 0, right = 0, top = 0, bottom = 0;
  };
  struct Run {
    const char* at;
    const char* end;
  };

  Window window(std::int64_t tile, std::size_t l) const {
    const Level& level = problem_.levels[l];
    const std::int64_t column = order_.column(tile);
    const std::int64_t row = order_.row(tile);
    return {.left = std::max<std::int64_t>(column * level.width / order_.columns - kReach, 0),
            .right = std::min((column + 1) * level.width / order_.columns + kReach + 1, level.width),
            .top = std::max<std::int64_t>(row * level.height / order_.rows - kReach, 0),
            .bottom = std::min((row + 1) * level.height / order_.rows + kReach + 1, level.height)};
  }

  const Problem& problem_;
  const HeadMapLayout& layout_;
  const QueryOrder& order_;
  std::size_t first_;
  std::size_t last_;
  std::vector<Run> runs_;
  std::size_t run_ = 0;
  std::int64_t per_step_ = 0;
};

}  // namespace tmaops::ops::ms_deform_attn
