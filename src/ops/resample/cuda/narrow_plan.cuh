// How narrow_rows cuts a problem, and the parameters of its kernels for plain calls.
#pragma once

#include <bit>
#include <cstdlib>
#include <limits>
#include <optional>

#include "ops/resample/cuda/narrow_long.cuh"
#include "ops/resample/cuda/narrow_pairs.cuh"
#include "ops/resample/cuda/narrow_row.cuh"
#include "ops/resample/cuda/one_generation.cuh"
#include "ops/resample/cuda/plain_tile.cuh"
#include "ops/resample/cuda/slice.cuh"

namespace tmaops::ops::resample::narrow_rows {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

inline constexpr int kMostNarrowThreads = 256;
inline constexpr int kLongestRow = 128;  // bytes

struct NarrowStorage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;
  Held rows;
  alignas(128) unsigned char bytes[96 * 1024];  // stamps, rows, strips; the launch asks for what the tile needs
};

/// A plain call, as in plain_tile.cuh.
struct NarrowJob {
  const unsigned char* stamps;
  const unsigned char* targets;
  const unsigned char* values;
  unsigned char* output;
  std::int64_t value_stride, output_stride;  // bytes from one trajectory to the next
  int stamp_stride, target_stride;           // elements
  int samples;
  int target_count;
  int batch;
  Pace pace;
  int stamp_limit, row_limit;            // the last sample that a window may begin with
  int stamp_unit_limit, row_unit_limit;  // the same in units of 16 bytes of the whole tensor
  Interpolation interpolation;
  Cut cut;
};

/// Threads per block, each with one target, and whole trajectories per block (0: none).
struct NarrowChoice {
  int threads = 256;
  int trajectories = 0;
  int time_margin = 0;
  int row_margin = 8;
};

/// Offsets of times are in 32 bits, those of values in units of 16 bytes.
inline bool takes_plain(const Problem& problem, const Call& call) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto within = [&](std::int64_t stride) { return std::abs(stride) * problem.batch < most; };
  return is_plain(problem, call) && problem.times == DType::f32 && problem.source >= 4 &&
         within(call.line.source.trajectory_stride) && within(call.line.target.trajectory_stride) &&
         call.values_end - call.values_begin < most * 16 && call.values_end - call.values_begin >= 16 &&
         call.times_end - call.times_begin >= 64;
}

inline NarrowJob plain_job(const Problem& problem, const Call& call, const Cut& cut) {
  const PlainCall plain = plain_call(problem, call);
  NarrowJob job{};
  job.stamps = plain.stamps;
  job.targets = plain.targets;
  job.values = plain.values;
  job.output = plain.output;
  job.value_stride = plain.value_stride;
  job.output_stride = plain.output_stride;
  job.stamp_stride = static_cast<int>(plain.stamp_stride / 4);
  job.target_stride = static_cast<int>(plain.target_stride / 4);
  job.samples = plain.samples;
  job.target_count = plain.target_count;
  job.batch = plain.batch;
  job.pace = plain.pace;
  job.interpolation = plain.interpolation;
  job.cut = cut;
  const std::int64_t stamps = plain.stamps_end - plain.stamps;
  const std::int64_t values = plain.values_end - plain.values;
  job.cut.stamp_bytes = static_cast<int>(std::min<std::int64_t>(cut.stamp_bytes, stamps));
  job.cut.copied_row_bytes = static_cast<int>(std::min<std::int64_t>(cut.copied_row_bytes, values));
  // Windows of tiles begin up to 16 bytes in front of the unit of their first sample, at a sector of 32 bytes: the last
  // ones that much later.
  job.stamp_limit = cut.trajectories > 0 ? 0 : plain.samples - cut.stamp_capacity + 4;
  job.row_limit = cut.trajectories > 0 ? 0 : plain.samples - cut.row_capacity + (15 + cut.row_bytes) / cut.row_bytes;
  job.stamp_unit_limit = static_cast<int>((stamps - job.cut.stamp_bytes) / 16);
  job.row_unit_limit = static_cast<int>((values - job.cut.copied_row_bytes) / 16);
  return job;
}

inline NarrowChoice choose(const Problem& problem, const Call& call) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  NarrowChoice choice;
  // Whole trajectories while they are short, a power of two of them so that warps store whole units of 16 bytes
  // (4096,100->50,7: 2, 4, 6, 8 trajectories 5.15, 4.70, 5.6, 4.88 us).
  constexpr std::int64_t kWholeBytes = 32 * 1024;
  constexpr std::int64_t kWholeThreads = 256;
  const bool separate = takes_plain(problem, call) && problem.dense_batches && !problem.shared_source_times;
  if (separate && problem.target > 1 && problem.target <= kWholeThreads / 2) {
    const std::int64_t one = std::max<std::int64_t>(problem.source * (row_bytes + time_bytes), 1);
    const std::int64_t fit = std::min({kWholeBytes / one, kWholeThreads / problem.target, problem.batch});
    choice.trajectories = fit >= 2 ? static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(fit))) : 0;
  }
  if (choice.trajectories > 0) {
    choice.threads = round_up(choice.trajectories * static_cast<int>(problem.target), device::kWarpThreads);
  } else {
    choice.threads = 128;
    // A sixteenth: rows of few bytes make stamps dear (8,100000->50000,14, even stamps: margins of 32, 276, 817 samples
    // 11.4, 11.8, 12.2 us).
    choice.time_margin = 4 + time_margin(problem.longest_source, call.longest_target) / 16;
    choice.row_margin = std::min(choice.time_margin, 32);
  }
  return choice;
}

/// Whether what every block writes is whole units of 16 bytes, for blocks of `targets` targets one after the other.
inline bool stores_tiles(const Problem& problem, const Call& call, std::int64_t targets, bool whole) {
  const auto size = static_cast<std::int64_t>(size_of(problem.values));
  const auto units = [&](std::int64_t elements) { return elements * size % 16 == 0; };
  return takes_plain(problem, call) && reinterpret_cast<std::uintptr_t>(call.output.data) % 16 == 0 &&
         units(targets * problem.channels) && units((whole ? problem.batch : 1) * problem.target * problem.channels) &&
         (whole || units(call.output.trajectory_stride));
}

inline Cut make_cut(const Problem& problem, const Call& call, const NarrowChoice& choice, int& shared_bytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  constexpr int kMostStampBytes = 16 * 1024;
  constexpr int kMostRowBytes = 48 * 1024;
  Cut cut{};
  cut.row_bytes = static_cast<int>(row_bytes);
  cut.words = problem.row_alignment >= 4 && row_bytes % 4 == 0;
  cut.trajectories = choice.trajectories;
  if (choice.trajectories > 0) {
    cut.tile = choice.trajectories * static_cast<int>(problem.target);
    cut.target_reciprocal = reciprocal_of(problem.target);
    cut.stamp_capacity = cut.row_capacity = choice.trajectories * static_cast<int>(problem.source);
  } else {
    cut.tile = choice.threads;
    cut.time_margin = choice.time_margin;
    cut.row_margin = choice.row_margin;
    cut.stamp_capacity =
        window_capacity(problem, call.longest_target, cut.tile, cut.time_margin, kMostStampBytes / time_bytes);
    cut.row_capacity =
        window_capacity(problem, call.longest_target, cut.tile, cut.row_margin, kMostRowBytes / row_bytes);
  }
  cut.stamp_bytes = slice_bytes(cut.stamp_capacity, time_bytes);
  cut.copied_row_bytes = slice_bytes(cut.row_capacity, row_bytes);
  cut.rows_at = round_up(cut.stamp_bytes, 128);
  cut.strips_at = cut.rows_at + round_up(cut.copied_row_bytes + 16, 128);  // combine_known reads a word too many
  cut.stores_tile = stores_tiles(problem, call, cut.tile, cut.trajectories > 0);
  cut.strip_bytes = device::kWarpThreads * cut.row_bytes + (cut.stores_tile ? 0 : 16);
  shared_bytes = static_cast<int>(sizeof(NarrowStorage) - sizeof(NarrowStorage::bytes)) + cut.strips_at +
                 choice.threads / device::kWarpThreads * cut.strip_bytes;
  return cut;
}

inline constexpr int kPairChannels = 7;

/// Whole trajectories per block of pair_kernel: as many as there are threads for, a power of two so that blocks write
/// whole units of 16 bytes; 0: none.
inline int pair_trajectories(const Problem& problem) {
  constexpr std::int64_t kMostBytes = 32 * 1024;
  const std::int64_t one = problem.source * (kPairChannels * 2 + 4);
  const std::int64_t fit = std::min({kMostBytes / one, 2 * kPairThreads / problem.target, problem.batch});
  const auto count = fit > 0 ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fit))) : 0;
  return count * problem.target % 8 == 0 ? static_cast<int>(count) : 0;
}

/// Whether pair_kernel takes it: every copy is whole units of 16 bytes, and so is what every warp writes.
inline bool takes_pairs(const Problem& problem, const Call& call) {
  const auto size = static_cast<std::int64_t>(size_of(problem.values));
  const auto units = [](std::int64_t elements, std::int64_t bytes) { return elements * bytes % 16 == 0; };
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  return size == 2 && problem.channels == kPairChannels && problem.target % 2 == 0 && problem.target > 0 &&
         problem.target <= 2 * kPairThreads && pair_trajectories(problem) > 0 && takes_plain(problem, call) &&
         problem.dense_batches && !problem.shared_source_times && !problem.shared_target_times &&
         units(problem.batch * problem.source, 4) && units(problem.batch * problem.source * problem.channels, size) &&
         aligned(call.line.target.data) && aligned(call.output.data);
}

inline PairJob pair_job(const Problem& problem, const Call& call, int& shared_bytes) {
  constexpr int width = kPairChannels * 2;
  const PlainCall plain = plain_call(problem, call);
  PairJob job{};
  job.stamps = plain.stamps;
  job.targets = plain.targets;
  job.values = plain.values;
  job.output = plain.output;
  job.samples = plain.samples;
  job.pairs = plain.target_count / 2;
  job.batch = plain.batch;
  job.trajectories = pair_trajectories(problem);
  job.pair_reciprocal = reciprocal_of(job.pairs);
  // As many units as the samples of a block lie in, wherever the first one is.
  const auto copied = [&](std::int64_t sample_bytes) {
    const std::int64_t bytes = job.trajectories * problem.source * sample_bytes;
    return static_cast<int>(
        std::min((bytes + (bytes % 16 == 0 ? 0 : 30)) / 16 * 16, problem.batch * problem.source * sample_bytes));
  };
  job.stamp_bytes = copied(4);
  job.row_bytes = copied(width);
  job.stamp_unit_limit = static_cast<int>((problem.batch * problem.source * 4 - job.stamp_bytes) / 16);
  job.row_unit_limit = static_cast<int>((problem.batch * problem.source * width - job.row_bytes) / 16);
  job.rows_at = round_up(job.stamp_bytes, 128);
  job.strips_at = job.rows_at + round_up(job.row_bytes + 4 * kPairRestWords, 128);
  job.interpolation = plain.interpolation;
  shared_bytes = static_cast<int>(sizeof(PairStorage) - sizeof(PairStorage::bytes)) + job.strips_at +
                 job.trajectories * plain.target_count * width;
  return job;
}

inline constexpr int kLongWords = 7;

/// The job of long_kernel and the shared memory of its blocks; nothing where it does not take the problem, or not all
/// blocks fit at once.
inline std::optional<LongJob> long_job(const Problem& problem, const Call& call, const DeviceInfo& device,
                                       int& shared_bytes) {
  constexpr int width = kLongWords * 4;
  constexpr int kMargin = 32;  // samples at both ends of the window; 8 to 40: the same
  constexpr std::int64_t kMostTensor = std::numeric_limits<int>::max();
  const std::int64_t row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  if (!takes_plain(problem, call) || row_bytes != width || problem.row_alignment < 4 || problem.target < kLongTile)
    return {};
  const PlainCall plain = plain_call(problem, call);
  const std::int64_t stamps = plain.stamps_end - plain.stamps;
  const std::int64_t values = plain.values_end - plain.values;
  const std::int64_t samples = (kLongTile * problem.source + problem.target - 1) / problem.target + 4 + 2 * kMargin;
  if (values > kMostTensor || samples * width > static_cast<std::int64_t>(sizeof(LongStorage::bytes))) return {};
  // The copies begin up to a line of 128 bytes early.
  LongJob job{};
  job.stamp_count = round_up(static_cast<int>(samples) + 31, 4);
  job.row_bytes = round_up(static_cast<int>(samples) * width + 127, 16);
  job.stamp_limit = static_cast<int>(stamps / 4) - job.stamp_count;
  job.row_limit = static_cast<int>(values) - job.row_bytes;
  if (job.stamp_limit < 0 || job.row_limit < 0) return {};
  job.stamps = plain.stamps;
  job.targets = plain.targets;
  job.values = plain.values;
  job.output = plain.output;
  job.output_stride = plain.output_stride;
  job.value_stride = static_cast<int>(plain.value_stride);
  job.stamp_stride = static_cast<int>(plain.stamp_stride / 4);
  job.target_stride = static_cast<int>(plain.target_stride / 4);
  job.samples = plain.samples;
  job.target_count = plain.target_count;
  job.pace = plain.pace;
  job.margin = kMargin;
  job.interpolation = plain.interpolation;
  job.stores_tile = stores_tiles(problem, call, kLongTile, false);
  job.rows_at = round_up(job.stamp_count * 4, 128);
  const int results = kLongTile * width + kLongThreads / device::kWarpThreads * 16;
  const int needed = static_cast<int>(sizeof(LongStorage) - sizeof(LongStorage::bytes)) + job.rows_at +
                     round_up(std::max(job.row_bytes, results), 128);
  // With few blocks on each multiprocessor their long tiles last longer than several generations of short ones: two of
  // eight of these trajectories take 5.5 us, with plain_kernel 4.0.
  constexpr std::int64_t kLeastBlocks = 6;  // more than so many on a multiprocessor
  const std::int64_t blocks = (problem.target + kLongTile - 1) / kLongTile * problem.batch;
  if (blocks <= kLeastBlocks * device.multiprocessors) return {};
  shared_bytes = one_generation(blocks, kLongThreads, needed, static_cast<int>(sizeof(LongStorage)), device);
  return shared_bytes > 0 ? std::optional(job) : std::nullopt;
}

}  // namespace tmaops::ops::resample::narrow_rows
