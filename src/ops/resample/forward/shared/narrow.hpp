// How problems with rows of any number of bytes, up to 128, are cut: one thread per target.
#pragma once

#include "ops/resample/shared/shared_layout.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::gpu {

inline constexpr int kMostNarrowThreads = 256;

/// Fixed on the host.
struct NarrowCut {
  int row_bytes;
  bool words;                               // rows are multiples of 4 bytes at multiples of 4 bytes
  int tile;                                 // targets per block
  int trajectories;                         // whole trajectories per block; 0: a tile of one
  std::uint32_t target_reciprocal;          // 2^32 / targets of a trajectory, rounded up
  int time_margin, row_margin;              // samples
  int time_capacity, row_capacity;          // samples
  int time_bytes, copied_row_bytes;         // of the largest copies
  SharedArray<unsigned char> rows, strips;  // behind the times, which stand first; a strip per warp for its output rows
  int strip_bytes;
  bool stores_tile;  // the strips of a block follow one another and leave in one bulk store
  int shared_end;
};

Support supports_narrow(const Problem& problem);
/// `trajectories`: whole ones per block, 0: tiles of one. `stores_tile`: as NarrowCut.
NarrowCut make_narrow_cut(const Problem& problem, std::int64_t longest_target, int trajectories, int threads,
                          bool stores_tile);
/// Shared memory per block with which ceil(blocks / multiprocessors) blocks fit on one, and no more; 0 if fewer fit
/// anyway. `needed`: bytes that a block uses; `most`: that it may ask for.
int one_generation(std::int64_t blocks, int threads, int needed, int most, const DeviceInfo& device);
/// Threads per block of tiles.
inline constexpr int kNarrowThreads = 128;

}  // namespace tmaops::ops::resample::gpu
