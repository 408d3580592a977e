// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/gpu/narrow_rows_pairs/configs.hpp"

#include <bit>

#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::narrow_rows_pairs {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

namespace {

/// Whether blocks of so many trajectories write whole chunks.
bool writes_chunks(const Problem& problem, std::int64_t trajectories) {
  return trajectories * problem.target * problem.row_bytes() % 16 == 0;
}

/// As many trajectories as a block has threads and memory for, a power of two; 0: none.
std::int64_t most_trajectories(const Problem& problem) {
  constexpr std::int64_t kMostBytes = 32 * 1024;
  const std::int64_t one = problem.source * (problem.row_bytes() + static_cast<std::int64_t>(sizeof(float)));
  const std::int64_t fit = std::min({kMostBytes / one, 2 * kThreads / problem.target, problem.batch});
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fit)));
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.times != DType::f32) return Support::no("needs f32 times");
  if (size_of(problem.values) != 2 || problem.channels % 2 == 0 || problem.channels < 3 || problem.channels > 9)
    return Support::no("needs 3, 5, 7 or 9 channels of 16-bit values");
  if (Support support = supports_plain(problem); !support) return support;
  if (!problem.dense_batches || problem.shared_source_times || problem.shared_target_times)
    return Support::no("needs trajectories with times of their own that follow one another without gaps");
  if (problem.target_times_alignment < 16 || problem.output_alignment < 16)
    return Support::no("needs target times and output at multiples of 16 bytes");
  if (problem.batch * problem.source * 4 % 16 != 0 || problem.batch * problem.source * problem.row_bytes() % 16 != 0)
    return Support::no("needs source times and values of whole chunks of 16 bytes");
  if (problem.target == 0 || problem.target % 2 != 0 || problem.target > 2 * kThreads)
    return Support::no("needs an even number of targets, at most " + std::to_string(2 * kThreads));
  if (!fits_units(problem, 1)) return Support::no("needs tensors of less than 2^31 values");
  if (const std::int64_t most = most_trajectories(problem); most == 0 || !writes_chunks(problem, most))
    return Support::no("needs short trajectories, and as many as write whole chunks of 16 bytes");
  return Support::yes();
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  std::vector<Config> all;
  for (std::int64_t each = most_trajectories(problem); each > 0 && writes_chunks(problem, each); each /= 2)
    all.push_back({.trajectories = static_cast<int>(each)});
  return all;
}

PairCut pair_cut(const Problem& problem, const Config& config) {
  const auto width = static_cast<int>(problem.row_bytes());
  PairCut cut{};
  cut.trajectories = config.trajectories;
  cut.pairs = static_cast<int>(problem.target / 2);
  cut.pair_reciprocal = reciprocal_of(cut.pairs);
  // As many chunks as the samples of a block lie in, wherever the first one is.
  const auto copied = [&](std::int64_t sample_bytes) {
    const std::int64_t bytes = cut.trajectories * problem.source * sample_bytes;
    return static_cast<int>(
        std::min((bytes + (bytes % 16 == 0 ? 0 : 30)) / 16 * 16, problem.batch * problem.source * sample_bytes));
  };
  cut.time_bytes = copied(4);
  cut.row_bytes = copied(width);
  cut.time_unit_limit = static_cast<int>((problem.batch * problem.source * 4 - cut.time_bytes) / 16);
  cut.row_unit_limit = static_cast<int>((problem.batch * problem.source * width - cut.row_bytes) / 16);
  cut.rows_at = round_up(cut.time_bytes, 128);
  cut.output_at = cut.rows_at + round_up(cut.row_bytes + rest_bytes(width), 128);
  cut.end_at = cut.output_at + cut.trajectories * static_cast<int>(problem.target) * width;
  return cut;
}

}  // namespace tmaops::ops::resample::narrow_rows_pairs
