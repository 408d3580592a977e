// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/gpu/narrow_rows_plain/configs.hpp"

#include <bit>

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

bool stores_tiles(const Problem& problem, std::int64_t targets, bool whole) {
  const auto chunks = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(size_of(problem.values)) % 16 == 0;
  };
  return problem.output_alignment == 16 && chunks(targets * problem.channels) &&
         chunks((whole ? problem.batch : 1) * problem.target * problem.channels) &&
         (whole || chunks(problem.output_stride));
}

int one_generation(std::int64_t blocks, int threads, int needed, int most, const DeviceInfo& device) {
  constexpr std::int64_t kReserved = 1024;  // of every block, by the driver
  const std::int64_t most_threads = device.compute_capability >= 120 ? 1536 : 2048;
  if (device.multiprocessors <= 0) return 0;
  const std::int64_t each = (blocks + device.multiprocessors - 1) / device.multiprocessors;
  if (each * threads > most_threads) return 0;
  const std::int64_t fit = (device.shared_memory_per_block + kReserved) / each - kReserved;
  if (fit < needed) return 0;
  return static_cast<int>(std::min<std::int64_t>(fit / 128 * 128, most));
}

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
