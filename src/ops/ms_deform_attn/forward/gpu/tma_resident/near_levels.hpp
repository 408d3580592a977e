// What tma_resident keeps in shared memory: for the kernel, and for tests of what is chosen on GPUs that have less.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn::tma_resident {

constexpr int kNearLevels = 2;  // at most, in shared memory: the last one of three levels, else the last two
constexpr int kFarLevels = 3;   // at most: the others, in memory
constexpr int kPlaneChannels = 16;
constexpr int kPixelBytes = 2 * kPlaneChannels;  // of a pixel in one of the two planes
constexpr int kPlanesAt = 18560;                 // bytes in front of the planes: the kernel's Storage

/// Of a problem of so many levels.
constexpr int far_levels(int levels) { return levels == 5 ? 3 : 2; }
inline std::size_t far_levels(const Problem& problem) {
  return static_cast<std::size_t>(far_levels(static_cast<int>(problem.levels.size())));
}

/// Pixels from row to row in shared memory.
inline std::int64_t near_pitch(const Level& level) { return level.width + (6 - level.width % 4) % 4; }

/// Of the near levels in one plane.
inline std::int64_t plane_bytes(const Problem& problem) {
  std::int64_t pixels = 0;
  for (std::size_t l = far_levels(problem); l < problem.levels.size(); ++l)
    pixels += (near_pitch(problem.levels[l]) * problem.levels[l].height + 3) / 4 * 4;
  return pixels * kPixelBytes;
}

/// Shared memory that a block asks for.
inline std::int64_t shared_bytes(const Problem& problem) { return kPlanesAt + 2 * plane_bytes(problem); }

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
