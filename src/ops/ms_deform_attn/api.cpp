// The public functions: check, select, run or plan.
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops {
namespace {

/// Calls fn(choice, problem, arguments) for a forward call.
template <class Fn>
auto with_forward_call(const ConstTensorView& value, std::span<const LevelShape> levels,
                       const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                       const TensorView& output, const MsDeformAttnOptions& options, bool planned, const Fn& fn) {
  using namespace ops::ms_deform_attn;  // NOLINT(google-build-using-namespace): the operator that this is the API of
  return public_entry("ms_deform_attn", [&] {
    Problem problem = make_problem(value, levels, sampling_locations, attention_weights, output, options);
    problem.planned = planned;
    const Arguments arguments{.value = value,
                              .sampling_locations = sampling_locations,
                              .attention_weights = attention_weights,
                              .reference_points = options.reference_points,
                              .padding_mask = options.padding_mask,
                              .offset_scale = options.offset_scale,
                              .level_views = {options.spatial_shapes, options.level_starts},
                              .output = output,
                              .dependent_launch = options.dependent_launch};
    return fn(select(problem, device_info(problem.device), options.variant), problem, arguments);
  });
}

/// The same for a backward call.
template <class Fn>
auto with_backward_call(const ConstTensorView& value, std::span<const LevelShape> levels,
                        const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                        const ConstTensorView& grad_output, const MsDeformAttnGradients& gradients,
                        const MsDeformAttnOptions& options, const Fn& fn) {
  using namespace ops::ms_deform_attn_backward;  // NOLINT(google-build-using-namespace): as above
  return public_entry("ms_deform_attn_backward", [&] {
    const Problem problem =
        make_problem(value, levels, sampling_locations, attention_weights, grad_output, gradients, options);
    const Arguments arguments{.value = value,
                              .sampling_locations = sampling_locations,
                              .attention_weights = attention_weights,
                              .grad_output = grad_output,
                              .gradients = gradients,
                              .level_views = {options.spatial_shapes, options.level_starts},
                              .dependent_launch = options.dependent_launch};
    return fn(select(problem, device_info(problem.forward.device), options.variant), problem, arguments);
  });
}

constexpr auto kPlan = [](const auto& choice, const auto& problem, const auto& arguments) {
  return make_plan(choice, problem, arguments);
};

}  // namespace

Plan plan_ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                         ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  return with_forward_call(value, levels, sampling_locations, attention_weights, output, options, true, kPlan);
}

void ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                    ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  with_forward_call(value, levels, sampling_locations, attention_weights, output, options, false,
                    [&](const auto& choice, const auto& problem, const auto& arguments) {
                      run_once(choice, problem, arguments, options.stream);
                    });
}

Plan plan_ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                                  ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                  ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                                  const MsDeformAttnOptions& options) {
  return with_backward_call(value, levels, sampling_locations, attention_weights, grad_output, gradients, options,
                            kPlan);
}

void ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                             ConstTensorView sampling_locations, ConstTensorView attention_weights,
                             ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                             const MsDeformAttnOptions& options) {
  with_backward_call(value, levels, sampling_locations, attention_weights, grad_output, gradients, options,
                     [&](const auto& choice, const auto& problem, const auto& arguments) {
                       run_once(choice, problem, arguments, options.stream);
                     });
}

}  // namespace tmaops
