// The public functions: arguments -> problem -> variant -> launch.
#include <memory>
#include <vector>

#include "core/entry.hpp"
#include "core/repeated_launches.hpp"
#include "ops/resample/problem.hpp"
#include "ops/resample/problem_backward.hpp"
#include "ops/resample/problem_violations.hpp"

namespace tmaops {
namespace {

using ops::resample::Targets;

template <class Problem, class Arguments>
void prepare_and_launch(const Variant<Problem, Arguments>& variant, const Problem& problem, Arguments arguments,
                        Stream stream) {
  if (variant.prepare) arguments.prepared = variant.prepare(problem, arguments);
  variant.launch(problem, arguments, stream);
}

void launch_once(const ConstTensorView& values, const ConstTensorView& source_times, const Targets& targets,
                 const TensorView& output, const ResampleOptions& options) {
  public_entry("resample", [&] {
    namespace op = ops::resample;
    const op::Problem problem = op::make_problem(values, source_times, targets, output, options);
    prepare_and_launch(op::select(problem, device_info(problem.device), options.variant), problem,
                       op::make_arguments(problem, values, source_times, targets, output, options), options.stream);
  });
}

void launch_backward(const ConstTensorView& source_times, const Targets& targets, const ConstTensorView& grad_output,
                     const TensorView& grad_values, const ResampleOptions& options) {
  public_entry("resample_backward", [&] {
    namespace op = ops::resample_backward;
    const op::Problem problem = op::make_problem(source_times, targets, grad_output, grad_values, options);
    prepare_and_launch(op::select(problem, device_info(problem.device), options.variant), problem,
                       op::make_arguments(problem, source_times, targets, grad_output, grad_values, options),
                       options.stream);
  });
}

void launch_violations(const ConstTensorView& source_times, const Targets& targets, const TensorView& counts,
                       const ResampleOptions& options) {
  public_entry("resample_violations", [&] {
    namespace op = ops::resample_violations;
    const op::Problem problem = op::make_problem(source_times, targets, counts, options);
    prepare_and_launch(op::select(problem, device_info(problem.device), options.variant), problem,
                       op::make_arguments(problem, source_times, targets, counts, options), options.stream);
  });
}

/// What both plans are. A plan keeps its own offsets: the caller's options may be gone when it runs.
template <class Problem, class Arguments>
struct Plan {
  std::vector<std::int64_t> source_offsets;
  std::vector<std::int64_t> target_offsets;
  Problem problem;
  Arguments arguments;
  const Variant<Problem, Arguments>* variant = nullptr;
  std::shared_ptr<const RepeatedLaunches> launches;  // on a GPU

  explicit Plan(const ResampleOptions& options)
      : source_offsets(options.source_offsets.begin(), options.source_offsets.end()),
        target_offsets(options.target_offsets.begin(), options.target_offsets.end()) {}

  ResampleOptions with_own_offsets(ResampleOptions options) const {
    options.source_offsets = source_offsets;
    options.target_offsets = target_offsets;
    return options;
  }
  void prepare() {
    if (variant->prepare) arguments.prepared = variant->prepare(problem, arguments);
  }
  void launch(Stream stream) const { variant->launch(problem, arguments, stream); }
  void repeat() {
    launches = RepeatedLaunches::of(problem.device, [this] { launch(nullptr); });
  }
  void run(Stream stream) const { launches ? launches->run(stream) : launch(stream); }
};

}  // namespace

void resample(ConstTensorView values, ConstTensorView source_times, ConstTensorView target_times, TensorView output,
              const ResampleOptions& options) {
  launch_once(values, source_times, {target_times, std::nullopt}, output, options);
}

void resample(ConstTensorView values, ConstTensorView source_times, const UniformGrid& grid, TensorView output,
              const ResampleOptions& options) {
  launch_once(values, source_times, {{}, grid}, output, options);
}

void resample_backward(ConstTensorView source_times, ConstTensorView target_times, ConstTensorView grad_output,
                       TensorView grad_values, const ResampleOptions& options) {
  launch_backward(source_times, {target_times, std::nullopt}, grad_output, grad_values, options);
}

void resample_backward(ConstTensorView source_times, const UniformGrid& grid, ConstTensorView grad_output,
                       TensorView grad_values, const ResampleOptions& options) {
  launch_backward(source_times, {{}, grid}, grad_output, grad_values, options);
}

void resample_violations(ConstTensorView source_times, ConstTensorView target_times, TensorView counts,
                         const ResampleOptions& options) {
  launch_violations(source_times, {target_times, std::nullopt}, counts, options);
}

void resample_violations(ConstTensorView source_times, const UniformGrid& grid, TensorView counts,
                         const ResampleOptions& options) {
  launch_violations(source_times, {{}, grid}, counts, options);
}

struct ResamplePlan::State : Plan<ops::resample::Problem, ops::resample::Arguments> {
  State(const ConstTensorView& values, const ConstTensorView& source_times, const Targets& targets,
        const TensorView& output, const ResampleOptions& options)
      : Plan(options) {
    namespace op = ops::resample;
    problem = op::make_problem(values, source_times, targets, output, options);
    variant = &op::select(problem, device_info(problem.device), options.variant);
    arguments = op::make_arguments(problem, values, source_times, targets, output, with_own_offsets(options));
    prepare();
    repeat();
  }
};

ResamplePlan::ResamplePlan(ConstTensorView values, ConstTensorView source_times, ConstTensorView target_times,
                           TensorView output, const ResampleOptions& options)
    : state_(public_entry("resample", [&] {
        return std::make_unique<State>(values, source_times, Targets{target_times, std::nullopt}, output, options);
      })) {}

ResamplePlan::ResamplePlan(ConstTensorView values, ConstTensorView source_times, const UniformGrid& grid,
                           TensorView output, const ResampleOptions& options)
    : state_(public_entry("resample", [&] {
        return std::make_unique<State>(values, source_times, Targets{{}, grid}, output, options);
      })) {}

ResamplePlan::~ResamplePlan() = default;
ResamplePlan::ResamplePlan(ResamplePlan&&) noexcept = default;
ResamplePlan& ResamplePlan::operator=(ResamplePlan&&) noexcept = default;

void ResamplePlan::run(Stream stream) const {
  public_entry("resample", [&] { state_->run(stream); });
}

std::string_view ResamplePlan::variant() const { return state_->variant->name; }

struct ResampleBackwardPlan::State : Plan<ops::resample_backward::Problem, ops::resample_backward::Arguments> {
  State(const ConstTensorView& source_times, const Targets& targets, const ConstTensorView& grad_output,
        const TensorView& grad_values, const ResampleOptions& options)
      : Plan(options) {
    namespace op = ops::resample_backward;
    problem = op::make_problem(source_times, targets, grad_output, grad_values, options);
    variant = &op::select(problem, device_info(problem.device), options.variant);
    arguments = op::make_arguments(problem, source_times, targets, grad_output, grad_values, with_own_offsets(options));
    prepare();
  }
};

ResampleBackwardPlan::ResampleBackwardPlan(ConstTensorView source_times, ConstTensorView target_times,
                                           ConstTensorView grad_output, TensorView grad_values,
                                           const ResampleOptions& options)
    : state_(public_entry("resample_backward", [&] {
        return std::make_unique<State>(source_times, Targets{target_times, std::nullopt}, grad_output, grad_values,
                                       options);
      })) {}

ResampleBackwardPlan::ResampleBackwardPlan(ConstTensorView source_times, const UniformGrid& grid,
                                           ConstTensorView grad_output, TensorView grad_values,
                                           const ResampleOptions& options)
    : state_(public_entry("resample_backward", [&] {
        return std::make_unique<State>(source_times, Targets{{}, grid}, grad_output, grad_values, options);
      })) {}

ResampleBackwardPlan::~ResampleBackwardPlan() = default;
ResampleBackwardPlan::ResampleBackwardPlan(ResampleBackwardPlan&&) noexcept = default;
ResampleBackwardPlan& ResampleBackwardPlan::operator=(ResampleBackwardPlan&&) noexcept = default;

void ResampleBackwardPlan::run(Stream stream) const {
  public_entry("resample_backward", [&] { state_->run(stream); });
}

std::string_view ResampleBackwardPlan::variant() const { return state_->variant->name; }

}  // namespace tmaops
