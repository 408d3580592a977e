// What the variant takes, and how it can run that.
#include <bit>

#include "ops/resample/forward/shared/narrow.hpp"
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::narrow_rows_plain {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

namespace {

/// Whole trajectories per block: a power of two of them, so that warps store whole chunks; 0 where they are too long.
int whole_trajectories(const Problem& problem) {
  constexpr std::int64_t kMostBytes = 32 * 1024;
  if (!problem.dense_batches || problem.shared_source_times || problem.target <= 1 ||
      problem.target > kMostNarrowThreads / 2)
    return 0;
  const std::int64_t one = problem.source * (problem.row_bytes() + static_cast<std::int64_t>(sizeof(float)));
  const std::int64_t fit = std::min({kMostBytes / one, kMostNarrowThreads / problem.target, problem.batch});
  return fit >= 2 ? static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(fit))) : 0;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.times != DType::f32) return Support::no("needs f32 times");
  if (Support support = supports_narrow(problem); !support) return support;
  if (!fits_units(problem, 1)) return Support::no("needs tensors of less than 2^31 values");
  if (problem.source * problem.row_bytes() < 16) return Support::no("needs trajectories of at least 16 bytes");
  return supports_plain(problem);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  std::vector<Config> all;
  if (const int whole = whole_trajectories(problem); whole > 0) all.push_back({.trajectories = whole});
  all.push_back({});
  return all;
}

}  // namespace tmaops::ops::resample::narrow_rows_plain
