// How many images, lists and bytes pixel_lists_backward works with: for the kernels and for its configurations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/ms_deform_attn/backward/problem.hpp"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {

/// Whole images, 160 MB of lists: an encoder's batch in one go.
inline constexpr std::int64_t kSamplesAtATime = 1 << 23;

inline std::int64_t samples_per_image(const ms_deform_attn::Problem& problem) {
  return problem.queries * problem.heads * problem.points;
}
inline std::int64_t images_at_a_time(const ms_deform_attn::Problem& problem) {
  return std::clamp<std::int64_t>(kSamplesAtATime / std::max<std::int64_t>(samples_per_image(problem), 1), 1,
                                  std::max<std::int64_t>(problem.batch, 1));
}
inline std::int64_t lists_per_head(const ms_deform_attn::Problem& problem) {
  std::int64_t lists = 0;
  for (const ms_deform_attn::Level& level : problem.levels) lists += (level.height + 1) * (level.width + 1);
  return lists;
}

inline constexpr std::int64_t kMostCountedBytes = 200 * 1024;  // of shared memory: the smem(...) of the variant's line

/// Shared memory for the counts of the largest level.
inline std::int64_t counted_bytes(const ms_deform_attn::Problem& problem) {
  std::int64_t largest = 0;
  for (const ms_deform_attn::Level& level : problem.levels)
    largest = std::max(largest, (level.height + 1) * (level.width + 1));
  return largest * static_cast<std::int64_t>(sizeof(unsigned));
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
