// How the variant cuts a call.
#pragma once

#include "ops/resample/forward/shared/narrow.hpp"

namespace tmaops::ops::resample::narrow_rows_pairs {

inline constexpr int kThreads = 128;  // each with two targets

/// Fixed on the host. Shared memory: times, rows, output rows.
struct PairCut {
  int trajectories;                     // whole ones of a block
  int pairs;                            // of targets, of a trajectory
  std::uint32_t pair_reciprocal;        // 2^32 / pairs, rounded up
  int time_bytes, row_bytes;            // of a block's copies
  int time_unit_limit, row_unit_limit;  // the last chunk of the whole tensor that a copy may begin with
  int rows_at, output_at, end_at;
};
PairCut pair_cut(const Problem& problem, const Config& config);

/// Bytes behind the last row that the kernel may read, and does not use: a row and a word.
constexpr int rest_bytes(int row_bytes) { return gpu::round_up(row_bytes + 4, 4); }

}  // namespace tmaops::ops::resample::narrow_rows_pairs
