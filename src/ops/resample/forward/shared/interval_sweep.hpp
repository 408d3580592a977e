// The frame of the CPU variants for modes over the interval of a target: a walk along samples and targets at once.
#pragma once

#include "ops/resample/problem.hpp"
#include "ops/resample/shared/interval_rows.hpp"

namespace tmaops::ops::resample {

/// Writes the channels of those modes, and `valid` where the problem has one of them. For data that run_tiles() has
/// looked at.
void run_intervals(const Problem& problem, const Arguments& arguments, const IntervalKernels& kernels);

}  // namespace tmaops::ops::resample
