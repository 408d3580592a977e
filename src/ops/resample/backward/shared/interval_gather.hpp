// The backward pass of modes over the interval of a target: gradients of a trajectory are added up target by target.
#pragma once

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/interval_rows.hpp"

namespace tmaops::ops::resample_backward {

/// Writes the channels of those modes. For data that run_gather() has looked at.
void run_interval_gather(const Problem& problem, const Arguments& arguments,
                         const resample::IntervalKernels& (*kernels)(DType));

}  // namespace tmaops::ops::resample_backward
