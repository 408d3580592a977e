// The checks of the backward pass, and its arguments as addresses.
#include "ops/resample/backward/problem.hpp"

namespace tmaops::ops::resample_backward {

Problem make_problem(const ConstTensorView& source_times, const Targets& targets, const ConstTensorView& grad_output,
                     const TensorView& grad_values, const ResampleOptions& options) {
  const ArgumentChecks checks("resample_backward");
  checks.views({{"grad_values", grad_values}, {"grad_output", grad_output}});
  checks.dtype("grad_values", grad_values, {DType::f16, DType::bf16, DType::f32, DType::f64});
  checks.dtype("grad_output", grad_output, {DType::f16, DType::bf16, DType::f32, DType::f64});
  Problem problem{resample::check_timeline("resample_backward", "grad_values", grad_values, "grad_output", grad_output,
                                           source_times, targets, options)};
  if (grad_output.dtype != grad_values.dtype && grad_output.dtype != DType::f32 && grad_values.dtype != DType::f32)
    checks.fail(ErrorCode::dtype_mismatch, "grad_output", std::string(to_string(grad_output.dtype)),
                std::string(to_string(grad_values.dtype)) + " as grad_values, or one of them f32");
  if ((grad_output.dtype == DType::f64) != (grad_values.dtype == DType::f64))
    checks.fail(ErrorCode::dtype_mismatch, "grad_output", std::string(to_string(grad_output.dtype)),
                "f64 on both sides, or on none; grad_values is " + std::string(to_string(grad_values.dtype)));
  for (std::size_t i = 0; i < problem.groups.size(); ++i)
    if (problem.groups[i].interpolation == Interpolation::cubic ||
        problem.groups[i].interpolation == Interpolation::slerp)
      checks.fail(ErrorCode::bad_parameter,
                  options.channel_groups.empty() ? "interpolation" : "channel_groups[" + std::to_string(i) + "]",
                  problem.groups[i].interpolation == Interpolation::cubic ? "cubic" : "slerp",
                  "linear, previous, next or nearest: the others are not linear in the values");
  checks.memory("grad_output", grad_output);
  checks.writable("grad_values", grad_values);
  checks.no_overlap("grad_values", grad_values, "grad_output", grad_output);
  resample::check_apart_from_times(checks, "grad_values", grad_values, source_times, targets, options);
  return problem;
}

Arguments make_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                         const ConstTensorView& grad_output, const TensorView& grad_values,
                         const ResampleOptions& options) {
  Arguments arguments{resample::time_arguments(problem, source_times, targets, options)};
  arguments.grad_output = resample::make_rows(grad_output, arguments.timeline.target_offsets);
  arguments.grad_values = resample::make_rows(grad_values, arguments.timeline.source_offsets);
  return arguments;
}

}  // namespace tmaops::ops::resample_backward
