// How many copies of its tensors a workload rotates over, so that a call never finds its inputs in a cache.
#pragma once

#include <cstdint>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// Sets of inputs of which calls touch more than the last-level cache of the workload's device holds; 1 where one set
/// is twice that cache. After prepare() it may be more than before: only then it is known what a resampling touches.
/// Throws Error out_of_memory when they exceed `cap` bytes.
int cold_sets(const Workload& workload, std::int64_t cap);

}  // namespace tmaops::bench
