// The checks of the backward pass, and its arguments as addresses.
#include "ops/resample/backward/problem.hpp"

#include <algorithm>

#include "ops/resample/options.hpp"

namespace tmaops::ops::resample_backward {

bool needs_values(const Problem& problem) {
  return std::ranges::any_of(problem.groups, [](const ChannelGroup& group) {
    return group.interpolation == Interpolation::min || group.interpolation == Interpolation::max;
  });
}

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
    if (const Interpolation mode = problem.groups[i].interpolation; !resample::has_gradient(mode))
      checks.fail(ErrorCode::bad_parameter,
                  options.channel_groups.empty() ? "interpolation" : "channel_groups[" + std::to_string(i) + "]",
                  std::string(resample::name_of(mode)),
                  "linear, previous, next, nearest, mean, sum, lowpass, min or max: cubic and slerp are not linear in "
                  "the values, any and count are steps");
  if (needs_values(problem)) {
    const std::string_view needed = "the values of the forward pass, since min and max give their gradient to a sample";
    if (!options.values.given()) checks.fail(ErrorCode::bad_parameter, "values", "nothing", std::string(needed));
    checks.views({{"values", options.values}});
    checks.dtype("values", options.values, {DType::f16, DType::bf16, DType::f32, DType::f64});
    problem.given = options.values.dtype;
    if (problem.packed_source)
      checks.shape("values", options.values, {problem.source, problem.channels}, "(rows, D)");
    else
      checks.shape("values", options.values, {problem.batch, problem.source, problem.channels}, "(B, S, D)");
    checks.same_device("values", options.values, "grad_values", grad_values);
    checks.memory("values", options.values);
    checks.no_overlap("grad_values", grad_values, "values", options.values);
  }
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
  if (needs_values(problem)) arguments.values = resample::make_rows(options.values, arguments.timeline.source_offsets);
  return arguments;
}

}  // namespace tmaops::ops::resample_backward
