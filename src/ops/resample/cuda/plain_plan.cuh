// How a plain call is cut into tiles, from the problem alone. Measured on an H200 (docs/findings/resample.md,
// R5, R9, R13 and R18 to R20).
#pragma once

#include <bit>
#include <cstdlib>
#include <limits>

#include "ops/resample/cuda/plain_mappings.cuh"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/warp_stamps.cuh"

namespace tmaops::ops::resample::cuda {

/// A mapping of plain_mappings.cuh with its parameters.
struct PlainChoice {
  enum class Mapping { own, warp, once, together, staged, apart, walk } mapping = Mapping::together;
  int threads = 256;
  int chunks = 4;   // per lane at a time, own and touched_rows
  int targets = 0;  // per block; per warp for apart and walk
  int row_margin = 4;
  int time_margin = 4;
  std::int64_t ahead_times = 0;   // bytes of the stamps, and of the target times: see fetch_ahead()
  std::int64_t ahead_values = 0;  // bytes, the same
  std::int64_t burst = 0;         // bytes of the values
  bool sliding = false;           // see Sliding
};

/// Sizes of a problem, in 16-byte chunks.
struct PlainSizes {
  explicit PlainSizes(const Problem& problem)
      : row_bytes(static_cast<int>(problem.channels * static_cast<std::int64_t>(size_of(problem.values)))),
        row(row_bytes / 16),
        all(problem.batch * problem.target * row),
        power(std::has_single_bit(static_cast<unsigned>(row))),
        f32_times(problem.times == DType::f32) {}
  int row_bytes;
  int row;           // chunks
  std::int64_t all;  // chunks of the output
  bool power;        // a row is 2^n chunks
  bool f32_times;    // kernels are compiled for all mappings: most calls have these
};
inline constexpr std::int64_t kLongCall = 1 << 19;    // chunks: some 6 us
inline constexpr std::int64_t kAheadBytes = 4 << 20;  // of each tensor; 2, 6 and 8 MiB: up to 3 % slower

/// Whether the kernels of plain calls take it: their offsets are in 32 bits.
inline bool takes_plain_tiles(const Problem& problem, const Call& call) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
  if (!is_plain(problem, call) || problem.source < 4) return false;
  const auto value_bytes = static_cast<std::int64_t>(size_of(problem.values));
  const auto within = [&](std::int64_t stride, std::int64_t trajectory) {
    return std::abs(stride) * problem.batch + trajectory < most;
  };
  const std::int64_t row = problem.channels * value_bytes / 16;
  return row <= 128 && within(call.line.source.trajectory_stride, problem.source) &&
         within(call.line.target.trajectory_stride, problem.target) &&
         within(call.values.trajectory_stride * value_bytes / 16, problem.source * row) &&
         within(call.output.trajectory_stride * value_bytes / 16, problem.target * row) &&
         call.times_end - call.times_begin >= 64;
}

/// Bytes of the values that are brought into the L2 in one burst by calls that write far more than they read: scattered
/// reads disturb the stream of writes (256,100->2048,256: 74.3 us without, 69.8 with). Only where the call is long
/// enough, and its source fits well inside the L2. (It made 64,1024->4096,64 slower.)
inline std::int64_t burst_bytes(const Problem& problem) {
  const std::int64_t row = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const std::int64_t source = problem.batch * problem.source * row;
  const std::int64_t output = problem.batch * problem.target * row;
  return output < 16 * source || output < 128 << 20 || source > 16 << 20 ? 0 : source;
}

/// Whether a call goes through several times what an L2 holds.
inline bool exceeds_l2(const Problem& problem) {
  const std::int64_t row = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  return problem.batch * (problem.source + problem.target) * row >= 128 << 20;
}

/// Bytes of the stamps, and of the target times, that touched_rows brings into the L2 ahead of time. In a call of
/// several times the L2's size those of later blocks have left it again before they are used, and are read twice:
/// 1024,512->512,128 bf16 read 142 MB of 138. 128 and 512 KiB: the same; nothing: 0.4 to 0.6 us slower.
inline std::int64_t ahead_times_bytes(const Problem& problem) { return exceeds_l2(problem) ? 256 << 10 : kAheadBytes; }

/// For bulk_window. Short calls want the shortest way through a block, long ones the fewest instructions.
inline PlainChoice choose_window(const Problem& problem) {
  using Mapping = PlainChoice::Mapping;
  const PlainSizes sizes(problem);
  PlainChoice choice;
  choice.time_margin = time_margin(problem.source, problem.target);
  choice.row_margin = std::min(choice.time_margin, sizes.row == 8 ? 8 : 4);
  if (sizes.f32_times && sizes.power && sizes.all < kLongCall && sizes.row <= 128) {
    choice.mapping = Mapping::own;
    const int few = sizes.row == 16 || sizes.all < 1 << 16 ? 2 : 1;
    choice.chunks = sizes.row >= 32 ? 4 : std::min(few, sizes.row);
    choice.threads = choice.chunks == 2 ? 256 : 128;
  } else if (sizes.f32_times && size_of(problem.values) == 2 && sizes.row % device::kWarpThreads == 0 &&
             problem.target >= 4 * problem.source) {
    choice.mapping = Mapping::walk;
    choice.targets = 8;
    choice.burst = burst_bytes(problem);
    choice.ahead_times = choice.burst > 0 ? kAheadBytes : 0;
    choice.ahead_values = std::min(choice.burst, kAheadBytes);
  } else if (sizes.power && sizes.row <= 8) {
    choice.mapping = Mapping::apart;
    choice.threads = 128;
    choice.targets = device::kWarpThreads;
  } else {
    choice.mapping = sizes.f32_times && problem.target < 2 * problem.source ? Mapping::staged : Mapping::together;
    choice.threads = sizes.row >= 32 ? 256 : 128;
    choice.targets = 4 * std::max(1, choice.threads / sizes.row);
  }
  return choice;
}

/// For touched_rows. Each lane for itself where kernels for it are compiled: blocks that live short keep the memory
/// busy up to the end of a call. More chunks per lane where there is more to write than to read: fewer lanes search. A
/// smaller window of stamps than 3 standard deviations ask for, since every block of 4 to 64 targets reads one, and a
/// miss costs only its own lanes (1024,512->512,128 f32, random: 123.9, 123.2 and 123.1 us with 34, 24 and 16 samples;
/// later 123.6, 123.3 and 123.4 with 20, 16 and 12).
/// Short calls with rows of at most 4 chunks: each target located once (64,4096->1024,32: 4.62 us instead of 4.88,
/// random 4.22 instead of 4.52; wider ones lose by that, 32,500->256,256 random 3.91 instead of 3.67, and so do long
/// ones, 1024,1000->500,32 random 23.9 instead of 22.4). 256 threads instead of 128: 256,500->250,32 dependent 3.99
/// instead of 3.95, random 4.00 instead of 4.14; plain 4.90 instead of 4.74.
/// Warps that hold their stamps where they have several targets among few samples: 32,500->256,256 random, dependent
/// 3.84 us instead of 4.12, 1024,512->512,128 f32 random 119.8 instead of 121.8. A target for each warp:
/// 512,512->256,512 random 73.9 instead of 73.4; 8 samples among four targets: 256,500->250,128 11.6 instead of 11.5.
inline PlainChoice choose_touched(const Problem& problem, bool dependent_launch) {
  using Mapping = PlainChoice::Mapping;
  const PlainSizes sizes(problem);
  PlainChoice choice;
  choice.time_margin = time_margin(problem.source, problem.target);
  choice.ahead_times = ahead_times_bytes(problem);
  if (sizes.f32_times && sizes.power) {
    const bool sparse = problem.source >= 3 * problem.target;
    const bool many = sizes.row >= 16 && problem.target >= (sizes.row == 16 ? 1 : 4) * problem.source;
    choice.mapping = Mapping::own;
    choice.chunks = std::min(sizes.row, sparse ? 1 : (many ? 4 : 2));
    if (sizes.row > 64) choice.chunks = 4;
    choice.threads =
        choice.chunks == 4 ? (sizes.row == 16 ? 64 : 128) : (choice.chunks == 2 && sizes.row <= 4 ? 64 : 128);
    const bool fewer = problem.target < problem.source;
    choice.time_margin = 2 + (sparse ? choice.time_margin * 2 / 3 : choice.time_margin * (fewer ? 9 : 7) / 24);
    choice.ahead_values =
        std::min(sparse ? kAheadBytes / 4 : kAheadBytes, problem.batch * problem.source * sizes.row * 8);
    const int lanes = sizes.row / std::min(sizes.row, 2);
    const std::int64_t near = device::kWarpThreads / std::min(lanes, device::kWarpThreads) * problem.source /
                              std::max<std::int64_t>(problem.target, 1);  // samples among a warp's targets
    const bool once = sizes.row <= 4 && (sparse || sizes.all < kLongCall);
    if (!once && !sparse && lanes < device::kWarpThreads && near <= WarpStamps::kCount / (fewer ? 8 : 4) &&
        problem.source >= WarpStamps::kCount) {
      choice.mapping = Mapping::warp;
      choice.chunks = std::min(sizes.row, 2);
      choice.threads = 128;
      choice.time_margin = (WarpStamps::kCount - 1 - static_cast<int>(near)) / 2;
      choice.sliding =
          exceeds_l2(problem) && problem.dense_batches && !problem.shared_source_times && !problem.shared_target_times;
    }
    if (once) {
      choice.mapping = Mapping::once;
      choice.chunks = 1;
      choice.threads = dependent_launch && !sparse ? 256 : 128;
    }
  } else if (sizes.f32_times && sizes.all < kLongCall) {
    choice.chunks = 1;
    choice.threads = 128;
    choice.targets = 2 * std::max(1, choice.threads / sizes.row);
  } else if (sizes.power && sizes.row <= 32) {
    choice.mapping = Mapping::apart;
    choice.threads = 128;
    choice.targets = std::min(device::kWarpThreads, 256 / sizes.row);
  } else {
    choice.chunks = 2;
    choice.threads = 128;
    choice.targets = 4 * std::max(1, choice.threads / sizes.row);
  }
  return choice;
}

/// `window`: with rows in shared memory. shared_bytes: what the tile needs.
inline PlainTile make_plain_tile(const Problem& problem, const Call& call, const PlainChoice& choice, bool window,
                                 int& shared_bytes) {
  using Mapping = PlainChoice::Mapping;
  constexpr int kMostStampBytes = 16 * 1024;
  constexpr int kMostRowBytes = 48 * 1024;  // more leaves too few blocks per multiprocessor to hide the latency
  const PlainSizes sizes(problem);
  const PlainCall plain = plain_call(problem, call);
  const auto time_bytes = static_cast<int>(size_of(problem.times));
  PlainTile tile{};
  tile.stamps = plain.stamps;
  tile.targets = plain.targets;
  tile.values = plain.values;
  tile.output = plain.output;
  tile.stamp_stride = static_cast<int>(plain.stamp_stride / time_bytes);
  tile.target_stride = static_cast<int>(plain.target_stride / time_bytes);
  tile.value_stride = static_cast<int>(plain.value_stride / 16);
  tile.output_stride = static_cast<int>(plain.output_stride / 16);
  tile.samples = plain.samples;
  tile.target_count = plain.target_count;
  tile.pace = plain.pace;
  tile.interpolation = plain.interpolation;

  tile.chunks = Chunks(sizes.row_bytes);
  tile.tile = choice.targets;
  tile.step = choice.threads / sizes.row;
  if (choice.mapping == Mapping::own || choice.mapping == Mapping::warp || choice.mapping == Mapping::once) {
    const int lanes = sizes.row / choice.chunks;
    tile.lane_shift = std::countr_zero(static_cast<unsigned>(lanes));
    tile.tile = choice.threads / lanes;
  } else if (choice.mapping == Mapping::apart || choice.mapping == Mapping::walk) {
    tile.targets_per_warp = choice.targets;
    tile.tile = choice.threads / device::kWarpThreads * choice.targets;
    tile.step = device::kWarpThreads / sizes.row;
  }

  tile.time_margin = choice.time_margin;
  tile.row_margin = choice.row_margin;
  const int stamp_capacity =
      window_capacity(problem, problem.target, tile.tile, tile.time_margin, kMostStampBytes / time_bytes - 4);
  const auto tensor_bytes = static_cast<std::int64_t>(plain.stamps_end - plain.stamps);
  tile.stamp_bytes = static_cast<int>(std::min<std::int64_t>(slice_bytes(stamp_capacity, time_bytes), tensor_bytes));
  tile.stamp_limit = plain.samples - stamp_capacity;
  tile.stamp_unit_limit = static_cast<int>((tensor_bytes - tile.stamp_bytes) / 16);
  tile.stamps_at = choice.mapping == Mapping::own ? 0 : round_up(tile.tile * static_cast<int>(sizeof(Spot)), 16);
  tile.rows_at = round_up(tile.stamps_at + tile.stamp_bytes, 128);
  tile.output_at = tile.rows_at;
  if (window) {
    tile.row_capacity =
        window_capacity(problem, problem.target, tile.tile, tile.row_margin, kMostRowBytes / sizes.row_bytes);
    tile.row_limit = plain.samples - tile.row_capacity;
    tile.output_at += tile.row_capacity * sizes.row_bytes;
  }

  const std::int64_t blocks =
      std::min<std::int64_t>(kAheadBlocks, (problem.target + tile.tile - 1) / tile.tile * problem.batch);
  const auto ahead = [&](const unsigned char* begin, const unsigned char* end) {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const unsigned char* from = begin + (at + 15) / 16 * 16 - at;
    const auto units = static_cast<std::uint32_t>(std::max<std::int64_t>(end - from, 0) / 16);
    return Ahead{from, units, static_cast<std::uint32_t>((units + blocks - 1) / blocks)};
  };
  if (choice.ahead_times > 0) {
    const unsigned char* begin = nullptr;
    const unsigned char* end = nullptr;
    find_extent(call.line.target, problem.batch, problem.target, 1, problem.times, begin, end);
    if (end - begin <= problem.batch * problem.target * time_bytes)
      tile.ahead[1] = ahead(begin, std::min(end, begin + choice.ahead_times));
    if (tensor_bytes <= problem.batch * problem.source * time_bytes)
      tile.ahead[0] = ahead(plain.stamps, std::min(plain.stamps_end, plain.stamps + choice.ahead_times));
  }
  if (problem.dense_batches) {
    tile.ahead[2] = ahead(plain.values, plain.values + choice.ahead_values);
    tile.burst = ahead(plain.values, plain.values + choice.burst);
  }
  shared_bytes = tile.output_at + (choice.mapping == Mapping::staged ? tile.tile * sizes.row_bytes : 0);
  return tile;
}

inline Sliding make_sliding(const Problem& problem, const PlainChoice& choice, const PlainTile& tile) {
  Sliding sliding{};
  if (!choice.sliding) return sliding;
  const std::int64_t blocks = (problem.target + tile.tile - 1) / tile.tile * problem.batch;
  const auto part = [&](const unsigned char* from, std::int64_t elements) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
    return Sliding::Part{from, static_cast<std::uint32_t>(std::min(bytes, most)),
                         static_cast<std::uint32_t>(bytes * 256 / blocks)};
  };
  sliding.part[0] = part(tile.stamps, problem.batch * problem.source);
  sliding.part[1] = part(tile.targets, problem.batch * problem.target);
  return sliding;
}

}  // namespace tmaops::ops::resample::cuda
