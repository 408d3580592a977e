// Where the samples of the lists are counted, best first.
#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/batches.hpp"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {
namespace {

/// Samples of one image and head, on average, from which a block's pay for clearing its counts and adding them.
constexpr std::int64_t kSamplesPerList = 2;

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const ms_deform_attn::Problem& forward = problem.forward;
  constexpr Config kGlobal{.counting = Counting::in_global_memory};
  constexpr Config kShared{.counting = Counting::in_shared_memory};
  const std::int64_t samples = forward.queries * forward.points;
  if (samples == 0 || counted_bytes(forward) > std::min(kMostCountedBytes, device.shared_memory_per_block))
    return {kGlobal};
  if (samples < kSamplesPerList * lists_per_head(forward)) return {kGlobal, kShared};
  return {kShared, kGlobal};
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
