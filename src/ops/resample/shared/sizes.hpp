// What the variants take, and how they cut a problem: host arithmetic that several of them use.
#pragma once

#include <cstdint>

#include "ops/resample/shared/call.hpp"

namespace tmaops::ops::resample::gpu {

inline constexpr int kWarp = 32;  // threads

/// What all kernels take: modes that look at the samples around a target alone.
Support supports_brackets(const Problem& problem);
/// What all variants with 32-bit row numbers take.
Support supports_rows(const Problem& problem);
/// The same for those with one weight per target.
Support supports_one_weight(const Problem& problem);
/// Windows of times, and of rows of at most `most` bytes without gaps.
Support supports_dense_rows(const Problem& problem, std::int64_t most = 1 << 20);
Support supports_row_bytes(const Problem& problem, std::int64_t most);
/// Rows of 16-byte chunks.
Support supports_16_byte_rows(const Problem& problem);
/// Windows of 16-byte rows without gaps.
Support supports_tiles(const Problem& problem);

/// How many samples a tile spans, with margins at both ends, at most `most`.
int window_capacity(const Problem& problem, std::int64_t longest_target, int tile, int margin, std::int64_t most);

/// How far timestamps stray from the guess, in samples, at about 3 standard deviations for targets drawn at random and
/// steps that vary by half: the spread of sorted uniform numbers, and of a sum of random steps. A timestamp costs few
/// bytes, mostly L2 hits, and a miss costs a search in global memory, so the margin is generous.
int time_margin(std::int64_t samples, std::int64_t targets);

/// Bytes of a window of `capacity` samples in shared memory, which may begin and end inside a chunk.
int slice_bytes(int capacity, std::int64_t stride);

inline constexpr int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// For a division by `count` > 1 as the upper half of a product.
inline std::uint32_t reciprocal_of(std::int64_t count) {
  return static_cast<std::uint32_t>(((std::int64_t{1} << 32) + count - 1) / count);
}

/// A row as 16-byte chunks, and division by their number as a multiplication: exact for items < 2^32 / count.
struct Chunks {
  int count = 1;
  std::uint32_t reciprocal = 0;
};
inline Chunks chunks_of(std::int64_t row_bytes) {
  return {static_cast<int>(row_bytes / 16), reciprocal_of(row_bytes / 16)};
}

inline constexpr int kMostTimeBytes = 16 * 1024;  // of a window of times

}  // namespace tmaops::ops::resample::gpu
