// Plain calls: linear, previous, next or nearest for all channels, targets outside held, no gaps, no mask, nothing
// packed, offsets in 32 bits. They have kernels of their own, which need a quarter of the parameters and none of the
// policies of a general Call.
#pragma once

#include <cstdint>

#include "ops/resample/shared/shared_layout.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::gpu {

/// A plain call, passed to kernels by value. Strides are from one trajectory to the next, 0 where all share the times.
struct PlainCall {
  const unsigned char* times = nullptr;    // source times of trajectory 0; multiple of 16
  const unsigned char* targets = nullptr;  // target times
  const unsigned char* values = nullptr;
  unsigned char* output = nullptr;
  int time_stride = 0, target_stride = 0;   // elements
  int value_stride = 0, output_stride = 0;  // chunks, or values for kernels that take any row
  int samples = 0;
  int target_count = 0;
  Pace pace{};
  Interpolation interpolation = Interpolation::linear;
};

/// All that makes a call plain but its interpolation, whatever the size of a row.
Support supports_plain_layout(const Problem& problem);
/// The same with one weight per target.
Support supports_plain(const Problem& problem);
/// The same for rows of 1 to 128 chunks.
Support supports_plain_chunks(const Problem& problem);
/// The same with f32 times and a row of 2^n chunks, which lanes of a warp can share.
Support supports_plain_lanes(const Problem& problem);

/// `unit`: values that the strides of values and output are counted in.
PlainCall make_plain_call(const Problem& problem, const Arguments& arguments, std::int64_t unit);
/// Whether strides and rows of values and output fit in 32 bits when they are counted so.
bool fits_units(const Problem& problem, std::int64_t unit);

/// Part of a tensor that the first blocks of a call bring into the L2, each a share. In chunks.
struct Ahead {
  const unsigned char* from = nullptr;
  std::uint32_t units = 0;
  std::uint32_t share = 0;  // 0: nothing is fetched
};
inline constexpr std::uint32_t kAheadBlocksEach = 4;  // of a multiprocessor
inline constexpr std::int64_t kAheadBytes = 4 << 20;  // of each tensor

/// Where the rows of a target are: `at` >= 0 is the offset of its row in the window of rows, else ~row. weight as in
/// Place.
struct alignas(8) Spot {
  int at;
  float weight;
};

/// A plain call cut into tiles of consecutive targets, one per block, passed to kernels by value. The host computes
/// here what no block must. Located targets, where there are any, stand first in shared memory.
struct PlainTile : PlainCall {
  Chunks chunks;                 // of a row
  int tile;                      // targets per block
  int targets_per_warp;          // where warps keep to themselves
  int lane_shift;                // log2 of the lanes that share a target, where they do
  int step;                      // targets that a block combines at a time, one chunk per thread
  int time_margin, row_margin;   // samples
  int time_limit, row_limit;     // the last sample that a window may begin with
  int time_unit_limit;           // the same in chunks of the whole tensor
  int time_bytes, row_capacity;  // of the windows: bytes, samples
  SharedArray<unsigned char> times_held, rows_held;
  int shared_end;
  Ahead ahead[3];  // times, target times, first values
};

/// How a plain call is to be cut.
struct PlainCut {
  int threads = 128;
  int targets = 0;            // per block
  int targets_per_warp = 0;   // where warps keep to themselves
  int lanes = 1;              // that share a target, a power of two
  bool leaves_spots = false;  // of located targets, in shared memory
  int time_margin = 4;
  bool windows = false;  // of rows, in shared memory
  int row_margin = 4;
  std::int64_t ahead_times = 0;   // bytes of the times, and of the target times, to bring into the L2
  std::int64_t ahead_values = 0;  // bytes, the same
};
PlainTile make_plain_tile(const Problem& problem, const Arguments& arguments, const PlainCut& cut);

/// Few targets among many samples.
inline bool is_sparse(const Problem& problem) { return problem.source >= 3 * problem.target; }
/// A cut for blocks that guess a window of rows. `lanes` share a target.
PlainCut windows_cut(const Problem& problem, int threads, int lanes = 1);
/// A cut for blocks of few targets that read only the rows that are needed, each by `lanes` lanes.
PlainCut touched_rows_cut(const Problem& problem, int threads, int lanes);

/// Chunks per lane, `best` first, with which threads_of(chunks, row) lanes make whole rows of `row` chunks.
std::vector<Config> lane_configs(int row, int best, int (*threads_of)(int chunks, int row));

/// Chunks of the output.
std::int64_t output_chunks(const Problem& problem);

}  // namespace tmaops::ops::resample::gpu
