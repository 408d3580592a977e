// How the variants with windows of rows in shared memory cut a problem into tiles.
#pragma once

#include <bit>

#include "core/cuda_launch.hpp"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/tile_rows.cuh"

namespace tmaops::ops::resample::cuda {

/// A mapping of tile_rows.cuh with its parameters, as chosen for a problem.
struct TileChoice {
  enum class Mapping { own, dealt, walk } mapping = Mapping::dealt;
  int threads = 128;
  int chunks_per_lane = 2;    // own: 2 or 4
  int targets_per_warp = 32;  // dealt, walk
  int row_margin = 4;
  int time_margin = 4;
};

/// Shared memory for the rows of a tile. More leaves too few blocks per multiprocessor to hide the latency.
inline constexpr int kMostTileBytes = 64 * 1024;
inline constexpr int kMostStampBytes = 16 * 1024;

inline Tile make_tile(const Problem& problem, const Call& call, const TileChoice& choice, int& shared_bytes,
                      int most_bytes = kMostTileBytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Tile tile{};
  tile.chunks = Chunks(row_bytes);
  const int warps = choice.threads / device::kWarpThreads;
  if (choice.mapping == TileChoice::Mapping::own) {
    const int lanes = tile.chunks.count / choice.chunks_per_lane;
    tile.lane_shift = std::countr_zero(static_cast<unsigned>(lanes));
    tile.targets_per_warp = device::kWarpThreads / lanes;
  } else {
    tile.targets_per_warp = choice.targets_per_warp;
  }
  tile.targets = tile.targets_per_warp * warps;
  tile.time_margin = choice.time_margin;
  tile.row_margin = choice.row_margin;
  tile.stamp_capacity = window_capacity(problem, call.longest_target, tile.targets, tile.time_margin,
                                        kMostStampBytes / time_bytes - 4);
  tile.stamp_bytes = slice_bytes(tile.stamp_capacity, time_bytes);
  tile.rows_at = (tile.stamp_bytes + 127) / 128 * 128;
  tile.row_capacity = window_capacity(problem, call.longest_target, tile.targets, tile.row_margin,
                                      (most_bytes - tile.rows_at) / row_bytes);
  shared_bytes = tile.rows_at + tile.row_capacity * static_cast<int>(row_bytes);
  return tile;
}

/// Whether kernels are compiled for all mappings: for f32 times, which most calls have. Others deal chunks out.
inline bool all_mappings(const Problem& problem, const Call& call) {
  return is_plain(problem, call) && problem.times == DType::f32;
}

/// Measured on an H200 (docs/findings/resample_gpu.md). Rows that serve many targets stay in registers (walk) or, being
/// narrow, are dealt out; else each lane searches for its own two chunks, and for rows of 512 bytes and more of a short
/// call four, so that blocks are smaller.
inline TileChoice choose_tile(const Problem& problem, const Call& call) {
  using Mapping = TileChoice::Mapping;
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto chunks = static_cast<int>(row_bytes / 16);
  const std::int64_t all_chunks = problem.batch * call.longest_target * chunks;
  constexpr std::int64_t kLong = 1 << 20;  // chunks: some 10 us
  TileChoice choice;
  choice.time_margin = time_margin(problem.longest_source, call.longest_target);
  choice.row_margin = std::min(choice.time_margin, std::max(3, static_cast<int>(2048 / row_bytes)));
  const bool power = std::has_single_bit(static_cast<unsigned>(chunks));
  const bool upsampling = call.longest_target >= 2 * problem.longest_source;
  if (all_mappings(problem, call) && upsampling && chunks % device::kWarpThreads == 0 &&
      call.longest_target >= 4 * problem.longest_source) {
    choice.mapping = Mapping::walk;
    choice.threads = 256;
    choice.targets_per_warp = 8;
  } else if (all_mappings(problem, call) && power && chunks >= 4 && chunks <= 64 && !(upsampling && all_chunks >= kLong)) {
    choice.mapping = Mapping::own;
    choice.chunks_per_lane = chunks >= 32 && all_chunks < kLong ? 4 : 2;
    choice.threads = all_chunks < kLong && chunks >= 32 ? 128 : chunks >= 32 ? 512 : 256;
  } else {  // general calls too: their kernel is compiled for this mapping alone
    choice.targets_per_warp = std::clamp(8 * device::kWarpThreads / chunks, 1, device::kWarpThreads);
  }
  return choice;
}

/// What variants with windows of 16-byte rows take.
inline Support supports_tiles(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_windows(problem, device); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  return supports_16_byte_rows(problem);
}

/// Calls fn(mapping) with the mapping's type.
template <class Time, class Fn>
void with_mapping(const TileChoice& choice, const Fn& fn) {
  if constexpr (std::is_same_v<Time, float>) {
    if (choice.mapping == TileChoice::Mapping::walk) return fn(Walk{});
    if (choice.mapping == TileChoice::Mapping::own)
      return choice.chunks_per_lane == 2 ? fn(Own<2>{}) : fn(Own<4>{});
  }
  fn(Dealt{});
}

/// For variants that are here to be compared: everything dealt out.
inline TileChoice dealt_choice(const Problem& problem, const Call& call) {
  TileChoice choice = choose_tile(problem, call);
  const auto chunks = static_cast<int>(problem.channels * static_cast<std::int64_t>(size_of(problem.values)) / 16);
  choice.mapping = TileChoice::Mapping::dealt;
  choice.threads = 128;
  choice.targets_per_warp = std::clamp(8 * device::kWarpThreads / chunks, 1, device::kWarpThreads);
  return choice;
}

}  // namespace tmaops::ops::resample::cuda
