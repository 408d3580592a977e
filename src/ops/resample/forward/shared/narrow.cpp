#include "ops/resample/forward/shared/narrow.hpp"

namespace tmaops::ops::resample::gpu {

Support supports_narrow(const Problem& problem) {
  if (Support support = supports_one_weight(problem); !support) return support;
  return supports_dense_rows(problem, 128);
}

NarrowCut make_narrow_cut(const Problem& problem, std::int64_t longest_target, int trajectories, int threads,
                          bool stores_tile) {
  constexpr int kMostRowBytes = 48 * 1024;
  const std::int64_t row_bytes = problem.row_bytes();
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  NarrowCut cut{};
  cut.row_bytes = static_cast<int>(row_bytes);
  cut.words = problem.row_alignment >= 4 && row_bytes % 4 == 0;
  cut.trajectories = trajectories;
  if (trajectories > 0) {
    cut.tile = trajectories * static_cast<int>(problem.target);
    cut.target_reciprocal = reciprocal_of(problem.target);
    cut.time_capacity = cut.row_capacity = trajectories * static_cast<int>(problem.source);
  } else {
    // A sixteenth of the usual margin: rows of few bytes make times dear.
    cut.tile = threads;
    cut.time_margin = 4 + time_margin(problem.longest_source, longest_target) / 16;
    cut.row_margin = std::min(cut.time_margin, 32);
    cut.time_capacity =
        window_capacity(problem, longest_target, cut.tile, cut.time_margin, kMostTimeBytes / time_bytes);
    cut.row_capacity = window_capacity(problem, longest_target, cut.tile, cut.row_margin, kMostRowBytes / row_bytes);
  }
  cut.time_bytes = slice_bytes(cut.time_capacity, time_bytes);
  cut.copied_row_bytes = slice_bytes(cut.row_capacity, row_bytes);
  cut.stores_tile = stores_tile;
  cut.strip_bytes = kWarp * cut.row_bytes + (stores_tile ? 0 : 16);
  SharedLayout layout;
  layout.add<unsigned char>(cut.time_bytes);
  cut.rows = layout.add<unsigned char>(cut.copied_row_bytes + 16);  // combine_known reads a word too many
  cut.strips = layout.add<unsigned char>(threads / kWarp * cut.strip_bytes);
  cut.shared_end = layout.end;
  return cut;
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

}  // namespace tmaops::ops::resample::gpu
