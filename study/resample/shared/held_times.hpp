// Published kernels that hold all timestamps of a trajectory in shared memory.
#pragma once

#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::gpu {

inline constexpr int kHeldTimeBytes = 48 * 1024;  // what a block has without asking for more

/// One weight per target, and timestamps of a trajectory that fit.
inline Support supports_held_times(const Problem& problem) {
  if (Support support = supports_one_weight(problem); !support) return support;
  if (problem.longest_source > kHeldTimeBytes / static_cast<std::int64_t>(size_of(problem.times)))
    return Support::no("needs trajectories whose timestamps take at most 48 KiB");
  return Support::yes();
}

}  // namespace tmaops::ops::resample::gpu
