// A tile of targets of a general call, and the windows of times and 16-byte rows that it needs.
#pragma once

#include "ops/resample/shared/shared_layout.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::gpu {

inline constexpr int kTileThreads = 128;
/// Shared memory of a tile. More leaves too few blocks per multiprocessor to hide the latency.
inline constexpr int kMostTileBytes = 64 * 1024;

/// Fixed on the host.
struct Tile {
  Chunks chunks;
  int targets;           // per block
  int targets_per_warp;  // at most 32
  int time_margin, row_margin;
  int time_capacity, row_capacity;  // samples
  int time_bytes;                   // of the largest copy
  SharedArray<unsigned char> rows;  // behind the times, which stand first
  int shared_end;
};

/// Targets per warp, so that a lane has about eight chunks to make.
int targets_per_warp(const Problem& problem);
/// How far in front of its guess a window of rows begins.
int row_margin(const Problem& problem, int time_margin);

/// `most_bytes`: of shared memory.
Tile make_tile(const Problem& problem, std::int64_t longest_target, int most_bytes = kMostTileBytes);

}  // namespace tmaops::ops::resample::gpu
