#include "ops/resample/forward/shared/plain.hpp"

#include <bit>

namespace tmaops::ops::resample::gpu {
namespace {

std::int64_t time_bytes_of(const Problem& problem) { return static_cast<std::int64_t>(size_of(problem.times)); }

/// Addresses [from, from + bytes) as whole chunks, in shares of `blocks` blocks.
Ahead shares(const unsigned char* from, std::int64_t bytes, std::int64_t blocks) {
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  const std::int64_t skipped = static_cast<std::int64_t>((at + 15) / 16 * 16 - at);
  const auto units = static_cast<std::uint32_t>(std::max<std::int64_t>(bytes - skipped, 0) / 16);
  return {from + skipped, units, static_cast<std::uint32_t>((units + blocks - 1) / blocks)};
}

/// Whole chunks of the source times.
std::int64_t whole_time_bytes(const Problem& problem) {
  const std::int64_t elements = (problem.batch - 1) * problem.source_times_stride + problem.source;
  return elements * time_bytes_of(problem) / 16 * 16;
}

/// Whether offsets inside a tensor fit in 32 bits. `rows`: the size of a trajectory.
bool within(const Problem& problem, std::int64_t stride, std::int64_t rows) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
  return (stride < 0 ? -stride : stride) * problem.batch + rows < most;
}

std::int64_t values_per_chunk(const Problem& problem) {
  return 16 / static_cast<std::int64_t>(size_of(problem.values));
}

/// Bytes of the times, and of the target times, worth bringing into the L2 ahead of time: in a call of several times
/// the L2's size those of later blocks have left it again before they are used, and are read twice.
std::int64_t ahead_times_bytes(const Problem& problem) {
  const bool exceeds_l2 = problem.batch * (problem.source + problem.target) * problem.row_bytes() >= 128 << 20;
  return exceeds_l2 ? 256 << 10 : kAheadBytes;
}

}  // namespace

bool fits_units(const Problem& problem, std::int64_t unit) {
  return within(problem, problem.values_stride / unit, problem.source * problem.channels / unit) &&
         within(problem, problem.output_stride / unit, problem.target * problem.channels / unit);
}

Support supports_plain_layout(const Problem& problem) {
  constexpr std::int64_t kMostBatch = 65535;  // one dimension of a grid
  if (Support support = supports_dense_rows(problem); !support) return support;
  if (problem.outside != Outside::hold || problem.max_gap || problem.valid_mask)
    return Support::no("needs targets outside held, no max_gap and no mask");
  if (problem.packed_source || problem.packed_target || problem.uniform_grid)
    return Support::no("needs arrays of times, nothing packed");
  if (problem.source_times_alignment < 16 || problem.values_alignment < 16)
    return Support::no("needs source times and values at multiples of 16 bytes");
  if (problem.source_times_stride < 0 || problem.values_stride < 0)
    return Support::no("needs trajectories in the order of their addresses");
  if (problem.source < 4 || problem.batch > kMostBatch || whole_time_bytes(problem) < 64)
    return Support::no("needs at least 4 samples and 64 bytes of times, and at most 65535 trajectories");
  if (!within(problem, problem.source_times_stride, problem.source) ||
      !within(problem, problem.target_times_stride, problem.target))
    return Support::no("needs times whose offsets fit in 32 bits");
  return Support::yes();
}

Support supports_plain(const Problem& problem) {
  if (Support support = supports_one_weight(problem); !support) return support;
  return supports_plain_layout(problem);
}

Support supports_plain_chunks(const Problem& problem) {
  if (Support support = supports_16_byte_rows(problem); !support) return support;
  if (Support support = supports_row_bytes(problem, 2048); !support) return support;
  if (!fits_units(problem, values_per_chunk(problem))) return Support::no("needs tensors whose chunks fit in 32 bits");
  return supports_plain(problem);
}

Support supports_plain_lanes(const Problem& problem) {
  if (problem.times != DType::f32) return Support::no("needs f32 times");
  if (Support support = supports_plain_chunks(problem); !support) return support;
  if (!std::has_single_bit(static_cast<std::uint64_t>(problem.row_bytes())))
    return Support::no("needs rows of 16 * 2^n bytes");
  return Support::yes();
}

PlainCall make_plain_call(const Problem& problem, const Arguments& arguments, std::int64_t unit) {
  PlainCall call;
  call.times = static_cast<const unsigned char*>(arguments.timeline.source.data);
  call.targets = static_cast<const unsigned char*>(arguments.timeline.target.data);
  call.values = static_cast<const unsigned char*>(arguments.values.data);
  call.output = static_cast<unsigned char*>(const_cast<void*>(arguments.output.data));
  call.time_stride = static_cast<int>(problem.source_times_stride);
  call.target_stride = static_cast<int>(problem.target_times_stride);
  call.value_stride = static_cast<int>(problem.values_stride / unit);
  call.output_stride = static_cast<int>(problem.output_stride / unit);
  call.samples = static_cast<int>(problem.source);
  call.target_count = static_cast<int>(problem.target);
  call.pace = pace_of(problem.source, problem.target);
  call.interpolation = problem.groups.front().interpolation;
  return call;
}

PlainTile make_plain_tile(const Problem& problem, const Arguments& arguments, const PlainCut& cut) {
  constexpr int kMostRowBytes = 48 * 1024;  // more leaves too few blocks per multiprocessor to hide the latency
  const auto row_bytes = static_cast<int>(problem.row_bytes());
  const auto time_bytes = static_cast<int>(time_bytes_of(problem));
  PlainTile tile{};
  static_cast<PlainCall&>(tile) = make_plain_call(problem, arguments, values_per_chunk(problem));
  tile.chunks = chunks_of(row_bytes);
  tile.tile = cut.targets;
  tile.targets_per_warp = cut.targets_per_warp;
  tile.lane_shift = std::countr_zero(static_cast<unsigned>(cut.lanes));
  tile.step = cut.threads / tile.chunks.count;
  tile.time_margin = cut.time_margin;
  tile.row_margin = cut.row_margin;
  const int capacity =
      window_capacity(problem, problem.target, tile.tile, tile.time_margin, kMostTimeBytes / time_bytes - 4);
  const std::int64_t tensor_bytes = whole_time_bytes(problem);
  tile.time_bytes = static_cast<int>(std::min<std::int64_t>(slice_bytes(capacity, time_bytes), tensor_bytes));
  tile.time_limit = tile.samples - capacity;
  tile.time_unit_limit = static_cast<int>((tensor_bytes - tile.time_bytes) / 16);
  if (cut.windows) {
    tile.row_capacity = window_capacity(problem, problem.target, tile.tile, tile.row_margin, kMostRowBytes / row_bytes);
    tile.row_limit = tile.samples - tile.row_capacity;
  }
  SharedLayout layout;
  layout.add<Spot>(cut.leaves_spots ? tile.tile : 0);
  tile.times_held = layout.add<unsigned char>(tile.time_bytes, 16);
  tile.rows_held = layout.add<unsigned char>(tile.row_capacity * row_bytes);
  tile.shared_end = layout.end;

  const std::int64_t at_once = std::int64_t{kAheadBlocksEach} * device_info(problem.device).multiprocessors;
  const std::int64_t blocks = std::min(at_once, (problem.target + tile.tile - 1) / tile.tile * problem.batch);
  if (cut.ahead_times > 0) {
    const MemoryRange targets = memory_of(arguments.timeline.target, problem.batch, problem.target, 1, problem.times);
    const std::int64_t target_bytes = targets.end - targets.begin;
    if (target_bytes <= problem.batch * problem.target * time_bytes)
      tile.ahead[1] = shares(targets.begin, std::min(target_bytes, cut.ahead_times), blocks);
    if (tensor_bytes <= problem.batch * problem.source * time_bytes)
      tile.ahead[0] = shares(tile.times, std::min(tensor_bytes, cut.ahead_times), blocks);
  }
  if (problem.dense_batches) tile.ahead[2] = shares(tile.values, cut.ahead_values, blocks);
  return tile;
}

PlainCut windows_cut(const Problem& problem, int threads, int lanes) {
  PlainCut cut;
  cut.threads = threads;
  cut.lanes = lanes;
  cut.targets = threads / lanes;
  cut.time_margin = time_margin(problem.source, problem.target);
  cut.windows = true;
  cut.row_margin = std::min(cut.time_margin, problem.row_bytes() == 128 ? 8 : 4);
  return cut;
}

PlainCut touched_rows_cut(const Problem& problem, int threads, int lanes) {
  const bool sparse = is_sparse(problem);
  PlainCut cut;
  cut.threads = threads;
  cut.lanes = lanes;
  cut.targets = threads / lanes;
  // A smaller window than time_margin() asks for, since every block of few targets reads one, and a miss costs only its
  // own lanes (docs/findings/resample.md, R20).
  const int margin = time_margin(problem.source, problem.target);
  cut.time_margin = 2 + (sparse ? margin * 2 / 3 : margin * (problem.target < problem.source ? 9 : 7) / 24);
  cut.ahead_times = ahead_times_bytes(problem);
  cut.ahead_values =
      std::min(sparse ? kAheadBytes / 4 : kAheadBytes, problem.batch * problem.source * problem.row_bytes() / 2);
  return cut;
}

std::vector<Config> lane_configs(int row, int best, int (*threads_of)(int chunks, int row)) {
  std::vector<Config> all{{.chunks = best, .threads = threads_of(best, row)}};
  for (const int chunks : {1, 2, 4})
    if (chunks <= row && row / chunks <= threads_of(chunks, row) && chunks != best)
      all.push_back({.chunks = chunks, .threads = threads_of(chunks, row)});
  return all;
}

std::int64_t output_chunks(const Problem& problem) {
  return problem.batch * problem.target * (problem.row_bytes() / 16);
}

}  // namespace tmaops::ops::resample::gpu
