// The frame of the CPU variants: targets are cut into tiles, each tile is first located in time (rows and weights),
// then its channels are combined group by group. A variant brings the kernels; the frame brings threads, checks and
// strides.
#pragma once

#include <array>
#include <cstdint>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {

/// Targets per tile: rows, weights and time ratios of a tile stay in the first-level cache (11 KB with f64 weights).
inline constexpr int kTileTargets = 256;
/// Kernels may write whole vectors: this many entries past the end.
inline constexpr int kTilePadding = 16;

/// Where the targets of a tile lie among the samples of their trajectory. Weights are f32, f64 for f64 values.
///   weight 0           the sample `row` alone
///   0 < weight < 1     between row and row + 1; above 0.5 exactly when row + 1 is strictly nearer
///   below 0, 1 or more extrapolated from row and row + 1
///   NaN                missing by policy
struct Tile {
  template <class T>
  using PerTarget = std::array<T, kTileTargets + kTilePadding>;

  /// f32 or f64 numbers, one per target.
  struct Numbers {
    alignas(64) PerTarget<double> memory;
    template <class T>
    T* as() {
      return reinterpret_cast<T*>(memory.data());
    }
    template <class T>
    const T* as() const {
      return reinterpret_cast<const T*>(memory.data());
    }
  };

  alignas(64) PerTarget<std::int32_t> row;
  Numbers weight;
  // Cubic: length of the target's interval over that of the one before and after it; -1 where there is none in the
  // same piece.
  Numbers ratio_before, ratio_after;
};

/// Times of a trajectory (at least one sample, fewer than 2^31) and the targets of a tile; strides in elements.
struct LocateRequest {
  const Timeline* timeline;
  const void* source;
  std::int64_t source_stride;
  std::int64_t source_count;
  const void* target;
  std::int64_t target_stride;
  std::int64_t target_count;
  bool nearest;  // the weight must tell which sample is nearer
};

/// The tile that is combined after the one at hand: its samples are asked for in time.
struct Coming {
  const void* values = nullptr;  // first row, the same channels
  const Tile* tile = nullptr;
  std::int64_t target_count = 0;
};

/// One channel group of a tile's targets: first row and first channel on both sides, strides in elements.
struct ChannelRequest {
  const void* values;
  std::int64_t row_stride;
  std::int64_t channel_stride;
  std::int64_t row_count;
  void* output;
  std::int64_t output_row_stride;
  std::int64_t output_channel_stride;
  std::int64_t channel_count;
  std::int64_t target_count;
  bool beyond_caches;  // the call moves more than the caches hold: what is written now is gone before anybody reads it
  Coming coming;
};

/// Bytes of samples asked for ahead of the target at hand (docs/findings/resample_cpu.md, Q4).
inline constexpr std::int64_t kPrefetchedBytes = 8192;
inline constexpr std::int64_t kCacheLine = 64;

/// Brings memory into the L2: a fetch into the L1 would hold one of its few miss buffers until memory answers.
inline void fetch_ahead(const void* from, std::int64_t bytes) {
  for (std::int64_t byte = 0; byte < bytes; byte += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + byte, 0, 2);
}

/// The kernels of a variant for one combination of types.
struct TileKernels {
  /// Whether time k - 1 is before time k (with `strict`) or not after it, for all k in [begin, end), begin > 0.
  bool (*ordered)(const void* times, std::int64_t stride, std::int64_t begin, std::int64_t end, bool strict);
  /// Fills row and weight. False when a target is not finite, outside with Outside::error, or too far to extrapolate.
  bool (*locate)(const LocateRequest&, Tile&);
  /// Fills the time ratios for the located rows.
  void (*ratios)(const LocateRequest&, Tile&);
  /// Writes the targets of a group, by interpolation. False when a quaternion is none.
  std::array<bool (*)(const ChannelRequest&, const Tile&), 6> combine;
  /// Called when a thread is done with a chunk: other threads must see what combine wrote past the caches.
  void (*finish)() = [] {};
};

/// Runs a whole problem with a variant's kernels, but for the channels whose mode is over an interval. Throws what
/// check_data throws.
void run_tiles(const Problem& problem, const Arguments& arguments, const TileKernels& kernels);

// --- shared with the backward pass ---------------------------------------------------------------------------------

/// Checks what needs only the ends of a trajectory's times: finite, span in range, f32 fine enough. n > 0.
bool check_ends(const Timeline& line, std::int64_t b);
/// Whether targets [t, t + count) of trajectory b are finite, which locating them finds out where there are samples.
bool check_targets(const Timeline& line, std::int64_t b, std::int64_t t, std::int64_t count);
/// For targets [t, t + count) of trajectory b, count up to kTileTargets. Those of a grid are written to `buffer`.
LocateRequest locate_request(const Timeline& line, std::int64_t b, std::int64_t t, std::int64_t count, bool nearest,
                             double* buffer);

/// The reasons for which the tiles cannot take a problem.
Support tiles_support(const Problem& problem);

}  // namespace tmaops::ops::resample
