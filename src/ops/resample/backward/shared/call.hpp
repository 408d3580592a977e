// A backward pass as the forward call that it is the transpose of.
#pragma once

#include "ops/resample/backward/problem.hpp"

namespace tmaops::ops::resample_backward {

/// values: grad_values, which are written; output: grad_output, which is read.
inline resample::Arguments forward_arguments(const Arguments& arguments) {
  resample::Arguments forward;
  forward.timeline = arguments.timeline;
  forward.values = arguments.grad_values;
  forward.output = arguments.grad_output;
  forward.offsets = arguments.offsets;
  return forward;
}

}  // namespace tmaops::ops::resample_backward
