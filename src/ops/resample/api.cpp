// The public functions: check, choose, run or plan.
#include "core/choice_cache.hpp"
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/problem.hpp"
#include "ops/resample/violations/problem.hpp"

namespace tmaops {
namespace {

/// Calls finish(choice, problem, arguments, memory) for a call of one of the three operators.
template <class Problem, class Arguments, class Finish>
auto with_call(const Problem& problem, Arguments arguments, const ResampleOptions& options, const Finish& finish) {
  const DeviceInfo& device = device_info(problem.device);
  const auto choose = [&] { return select(problem, device, options.variant); };
  const MemoryOptions memory{.device = problem.device, .allocator = options.allocator, .stream = options.stream};
  return finish(remembered<decltype(choose())>(problem, device, {.name = options.variant}, choose), problem, arguments,
                memory);
}

template <class Finish>
auto with_resample(const ConstTensorView& values, const ConstTensorView& source_times, const ResampleTargets& targets,
                   const TensorView& output, const ResampleOptions& options, const Finish& finish) {
  return public_entry("resample", [&] {
    namespace op = ops::resample;
    const op::Problem problem = op::make_problem(values, source_times, targets, output, options);
    return with_call(problem, op::make_arguments(problem, values, source_times, targets, output, options), options,
                     finish);
  });
}

template <class Finish>
auto with_backward(const ConstTensorView& source_times, const ResampleTargets& targets,
                   const ConstTensorView& grad_output, const TensorView& grad_values, const ResampleOptions& options,
                   const Finish& finish) {
  return public_entry("resample_backward", [&] {
    namespace op = ops::resample_backward;
    const op::Problem problem = op::make_problem(source_times, targets, grad_output, grad_values, options);
    return with_call(problem, op::make_arguments(problem, source_times, targets, grad_output, grad_values, options),
                     options, finish);
  });
}

constexpr auto kRun = [](const auto& choice, const auto& problem, auto& arguments, const MemoryOptions& memory) {
  run_once(choice, problem, arguments, memory);
};
constexpr auto kWorkspace = [](const auto& choice, const auto& problem, auto& arguments, const MemoryOptions& memory) {
  return workspace_bytes(choice, problem, arguments, memory);
};

/// A tensor of offsets where a plan reads it in every run. It has a copy of offsets on the host.
ConstTensorView read_by_runs(const ConstTensorView& offsets, bool on_device) {
  return on_device ? offsets : ConstTensorView{};
}
template <class To>
void set_source_offsets(To& to, void* data) {
  to.timeline.source_offsets = static_cast<const std::int64_t*>(data);
}
template <class To>
void set_target_offsets(To& to, void* data) {
  to.timeline.target_offsets = static_cast<const std::int64_t*>(data);
}

}  // namespace

void resample(ConstTensorView values, ConstTensorView source_times, const ResampleTargets& targets, TensorView output,
              const ResampleOptions& options) {
  with_resample(values, source_times, targets, output, options, kRun);
}

std::size_t resample_workspace(ConstTensorView values, ConstTensorView source_times, const ResampleTargets& targets,
                               TensorView output, const ResampleOptions& options) {
  return with_resample(values, source_times, targets, output, options, kWorkspace);
}

void resample_backward(ConstTensorView source_times, const ResampleTargets& targets, ConstTensorView grad_output,
                       TensorView grad_values, const ResampleOptions& options) {
  with_backward(source_times, targets, grad_output, grad_values, options, kRun);
}

std::size_t resample_backward_workspace(ConstTensorView source_times, const ResampleTargets& targets,
                                        ConstTensorView grad_output, TensorView grad_values,
                                        const ResampleOptions& options) {
  return with_backward(source_times, targets, grad_output, grad_values, options, kWorkspace);
}

Plan plan_resample(ConstTensorView values, ConstTensorView source_times, const ResampleTargets& targets,
                   TensorView output, const ResampleOptions& options) {
  using To = ops::resample::Arguments;
  const auto plan = [&](const auto& choice, const auto& problem, const To& call, const MemoryOptions& memory) {
    const ConstTensorView source = read_by_runs(options.source_offset_tensor, problem.source_offsets_on_device);
    const ConstTensorView target = read_by_runs(options.target_offset_tensor, problem.target_offsets_on_device);
    return make_plan(choice, problem, call, memory,
                     {{"values", values, [](To& to, void* data) { to.values.data = data; }},
                      {"source_times", source_times, [](To& to, void* data) { to.timeline.source.data = data; }},
                      {"target_times", targets.times, [](To& to, void* data) { to.timeline.target.data = data; }},
                      {"output", output, [](To& to, void* data) { to.output.data = data; }, true},
                      {"valid", options.valid, [](To& to, void* data) { to.valid.data = data; }, true},
                      {"source_offset_tensor", source, set_source_offsets<To>},
                      {"target_offset_tensor", target, set_target_offsets<To>}});
  };
  return with_resample(values, source_times, targets, output, options, plan);
}

Plan plan_resample_backward(ConstTensorView source_times, const ResampleTargets& targets, ConstTensorView grad_output,
                            TensorView grad_values, const ResampleOptions& options) {
  using To = ops::resample_backward::Arguments;
  const auto plan = [&](const auto& choice, const auto& problem, const To& call, const MemoryOptions& memory) {
    const ConstTensorView source = read_by_runs(options.source_offset_tensor, problem.source_offsets_on_device);
    const ConstTensorView target = read_by_runs(options.target_offset_tensor, problem.target_offsets_on_device);
    return make_plan(choice, problem, call, memory,
                     {{"source_times", source_times, [](To& to, void* data) { to.timeline.source.data = data; }},
                      {"target_times", targets.times, [](To& to, void* data) { to.timeline.target.data = data; }},
                      {"grad_output", grad_output, [](To& to, void* data) { to.grad_output.data = data; }},
                      {"grad_values", grad_values, [](To& to, void* data) { to.grad_values.data = data; }, true},
                      {"values", needs_values(problem) ? options.values : ConstTensorView{},
                       [](To& to, void* data) { to.values.data = data; }},
                      {"source_offset_tensor", source, set_source_offsets<To>},
                      {"target_offset_tensor", target, set_target_offsets<To>}});
  };
  return with_backward(source_times, targets, grad_output, grad_values, options, plan);
}

void resample_violations(ConstTensorView source_times, const ResampleTargets& targets, TensorView counts,
                         const ResampleOptions& options) {
  public_entry("resample_violations", [&] {
    namespace op = ops::resample_violations;
    const op::Problem problem = op::make_problem(source_times, targets, counts, options);
    with_call(problem, op::make_arguments(problem, source_times, targets, counts, options), options, kRun);
  });
}

}  // namespace tmaops
