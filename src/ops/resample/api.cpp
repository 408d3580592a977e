// The public functions: arguments -> problem -> choice -> work.
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/problem.hpp"
#include "ops/resample/violations/problem.hpp"

namespace tmaops {
namespace {

using ops::resample::Targets;

/// Calls finish(choice, problem, arguments) for a call of one of the three operators.
template <class Finish>
auto with_resample(const ConstTensorView& values, const ConstTensorView& source_times, const Targets& targets,
                   const TensorView& output, const ResampleOptions& options, const Finish& finish) {
  return public_entry("resample", [&] {
    namespace op = ops::resample;
    const op::Problem problem = op::make_problem(values, source_times, targets, output, options);
    return finish(op::select(problem, device_info(problem.device), options.variant), problem,
                  op::make_arguments(problem, values, source_times, targets, output, options));
  });
}

template <class Finish>
auto with_backward(const ConstTensorView& source_times, const Targets& targets, const ConstTensorView& grad_output,
                   const TensorView& grad_values, const ResampleOptions& options, const Finish& finish) {
  return public_entry("resample_backward", [&] {
    namespace op = ops::resample_backward;
    const op::Problem problem = op::make_problem(source_times, targets, grad_output, grad_values, options);
    return finish(op::select(problem, device_info(problem.device), options.variant), problem,
                  op::make_arguments(problem, source_times, targets, grad_output, grad_values, options));
  });
}

template <class Finish>
auto with_violations(const ConstTensorView& source_times, const Targets& targets, const TensorView& counts,
                     const ResampleOptions& options, const Finish& finish) {
  return public_entry("resample_violations", [&] {
    namespace op = ops::resample_violations;
    const op::Problem problem = op::make_problem(source_times, targets, counts, options);
    return finish(op::select(problem, device_info(problem.device), options.variant), problem,
                  op::make_arguments(problem, source_times, targets, counts, options));
  });
}

auto once_on(Stream stream) {
  return [stream](const auto& choice, const auto& problem, const auto& arguments) {
    run_once(choice, problem, arguments, stream);
  };
}

constexpr auto kPlan = [](const auto& choice, const auto& problem, const auto& arguments) {
  return make_plan(choice, problem, arguments);
};

}  // namespace

void resample(ConstTensorView values, ConstTensorView source_times, ConstTensorView target_times, TensorView output,
              const ResampleOptions& options) {
  with_resample(values, source_times, {target_times, std::nullopt}, output, options, once_on(options.stream));
}

void resample(ConstTensorView values, ConstTensorView source_times, const UniformGrid& grid, TensorView output,
              const ResampleOptions& options) {
  with_resample(values, source_times, {{}, grid}, output, options, once_on(options.stream));
}

Plan plan_resample(ConstTensorView values, ConstTensorView source_times, ConstTensorView target_times,
                   TensorView output, const ResampleOptions& options) {
  return with_resample(values, source_times, {target_times, std::nullopt}, output, options, kPlan);
}

Plan plan_resample(ConstTensorView values, ConstTensorView source_times, const UniformGrid& grid, TensorView output,
                   const ResampleOptions& options) {
  return with_resample(values, source_times, {{}, grid}, output, options, kPlan);
}

void resample_backward(ConstTensorView source_times, ConstTensorView target_times, ConstTensorView grad_output,
                       TensorView grad_values, const ResampleOptions& options) {
  with_backward(source_times, {target_times, std::nullopt}, grad_output, grad_values, options, once_on(options.stream));
}

void resample_backward(ConstTensorView source_times, const UniformGrid& grid, ConstTensorView grad_output,
                       TensorView grad_values, const ResampleOptions& options) {
  with_backward(source_times, {{}, grid}, grad_output, grad_values, options, once_on(options.stream));
}

Plan plan_resample_backward(ConstTensorView source_times, ConstTensorView target_times, ConstTensorView grad_output,
                            TensorView grad_values, const ResampleOptions& options) {
  return with_backward(source_times, {target_times, std::nullopt}, grad_output, grad_values, options, kPlan);
}

Plan plan_resample_backward(ConstTensorView source_times, const UniformGrid& grid, ConstTensorView grad_output,
                            TensorView grad_values, const ResampleOptions& options) {
  return with_backward(source_times, {{}, grid}, grad_output, grad_values, options, kPlan);
}

void resample_violations(ConstTensorView source_times, ConstTensorView target_times, TensorView counts,
                         const ResampleOptions& options) {
  with_violations(source_times, {target_times, std::nullopt}, counts, options, once_on(options.stream));
}

void resample_violations(ConstTensorView source_times, const UniformGrid& grid, TensorView counts,
                         const ResampleOptions& options) {
  with_violations(source_times, {{}, grid}, counts, options, once_on(options.stream));
}

}  // namespace tmaops
