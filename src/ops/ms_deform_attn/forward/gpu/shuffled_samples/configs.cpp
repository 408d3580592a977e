// One group or four, best first: four where their threads all run at once. Each group takes levels of its own.
#include "ops/ms_deform_attn/forward/gpu/shuffled_samples/threads.hpp"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::shuffled_samples {

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const std::int64_t threads = problem.batch * problem.queries * problem.heads
                               << (gpu::lane_bits(problem) + kSplitBits);
  const std::int64_t at_once = std::int64_t{device.multiprocessors} * kSplitBlocksPerMultiprocessor * kSplitThreads;
  constexpr Config kOne{.groups = 1};
  if (gpu::lane_bits(problem) > kMostSplitLaneBits || problem.levels.size() == 1) return {kOne};
  constexpr Config kSplit{.groups = 1 << kSplitBits};
  return threads <= at_once ? std::vector{kSplit, kOne} : std::vector{kOne, kSplit};
}

}  // namespace tmaops::ops::ms_deform_attn::shuffled_samples
