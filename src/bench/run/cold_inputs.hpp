// How many copies of its tensors a workload rotates over, so that a call never finds its inputs in a cache.
#pragma once

#include <cstdint>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// So many sets of inputs that the calls on them touch more than the last-level cache of the device holds. 1 where one
/// set is twice that cache. The number may grow after prepare(), when the bytes that a resampling touches are known.
/// Throws Error out_of_memory when they exceed `cap` bytes.
int cold_sets(const Workload& workload, std::int64_t cap);

}  // namespace tmaops::bench
