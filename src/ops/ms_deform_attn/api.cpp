// The public functions: check, choose, run or plan.
#include "core/choice_cache.hpp"
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops {
namespace {

namespace forward = ops::ms_deform_attn;
namespace backward = ops::ms_deform_attn_backward;

/// The choice for a problem of either pass on a device.
template <class Problem>
auto choice_of(const Problem& problem, const Device& on, const MsDeformAttnOptions& options) {
  const DeviceInfo& device = device_info(on);
  const auto choose = [&] { return select(problem, device, options.variant); };
  return remembered<decltype(choose())>(problem, device, {.name = options.variant}, choose);
}

MemoryOptions memory_of(const ConstTensorView& value, const MsDeformAttnOptions& options) {
  return {.device = value.device, .allocator = options.allocator, .stream = options.stream};
}

/// Calls fn(choice, problem, arguments) for a forward call.
template <class Fn>
auto with_forward_call(const ConstTensorView& value, std::span<const LevelShape> levels,
                       const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                       const TensorView& output, const MsDeformAttnOptions& options, const Fn& fn) {
  return public_entry("ms_deform_attn", [&] {
    const forward::Problem problem =
        forward::make_problem(value, levels, sampling_locations, attention_weights, output, options);
    forward::Arguments arguments{.value = value,
                                 .sampling_locations = sampling_locations,
                                 .attention_weights = attention_weights,
                                 .reference_points = options.reference_points,
                                 .padding_mask = options.padding_mask,
                                 .offset_scale = options.offset_scale,
                                 .level_views = {options.spatial_shapes, options.level_starts},
                                 .output = output,
                                 .dependent_launch = options.dependent_launch};
    return fn(choice_of(problem, problem.device, options), problem, arguments, memory_of(value, options));
  });
}

/// The same for a backward call.
template <class Fn>
auto with_backward_call(const ConstTensorView& value, std::span<const LevelShape> levels,
                        const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                        const ConstTensorView& grad_output, const MsDeformAttnGradients& gradients,
                        const MsDeformAttnOptions& options, const Fn& fn) {
  return public_entry("ms_deform_attn_backward", [&] {
    const backward::Problem problem =
        backward::make_problem(value, levels, sampling_locations, attention_weights, grad_output, gradients, options);
    backward::Arguments arguments{.value = value,
                                  .sampling_locations = sampling_locations,
                                  .attention_weights = attention_weights,
                                  .grad_output = grad_output,
                                  .gradients = gradients,
                                  .level_views = {options.spatial_shapes, options.level_starts},
                                  .dependent_launch = options.dependent_launch};
    return fn(choice_of(problem, problem.forward.device, options), problem, arguments, memory_of(value, options));
  });
}

constexpr auto kRun = [](const auto& choice, const auto& problem, auto& arguments, const MemoryOptions& memory) {
  run_once(choice, problem, arguments, memory);
};
constexpr auto kWorkspace = [](const auto& choice, const auto& problem, auto& arguments, const MemoryOptions& memory) {
  return workspace_bytes(choice, problem, arguments, memory);
};

}  // namespace

Plan plan_ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                         ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  const auto plan = [](const auto& choice, const auto& problem, const forward::Arguments& call,
                       const MemoryOptions& memory) {
    using To = forward::Arguments;
    return make_plan(
        choice, problem, call, memory,
        {{"value", call.value, [](To& to, void* data) { to.value.data = data; }},
         {"sampling_locations", call.sampling_locations, [](To& to, void* data) { to.sampling_locations.data = data; }},
         {"attention_weights", call.attention_weights, [](To& to, void* data) { to.attention_weights.data = data; }},
         {"output", call.output, [](To& to, void* data) { to.output.data = data; }, true},
         {"reference_points", call.reference_points, [](To& to, void* data) { to.reference_points.data = data; }},
         {"padding_mask", call.padding_mask, [](To& to, void* data) { to.padding_mask.data = data; }}});
  };
  return with_forward_call(value, levels, sampling_locations, attention_weights, output, options, plan);
}

void ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                    ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  with_forward_call(value, levels, sampling_locations, attention_weights, output, options, kRun);
}

std::size_t ms_deform_attn_workspace(ConstTensorView value, std::span<const LevelShape> levels,
                                     ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                     TensorView output, const MsDeformAttnOptions& options) {
  return with_forward_call(value, levels, sampling_locations, attention_weights, output, options, kWorkspace);
}

Plan plan_ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                                  ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                  ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                                  const MsDeformAttnOptions& options) {
  const auto plan = [](const auto& choice, const auto& problem, const backward::Arguments& call,
                       const MemoryOptions& memory) {
    using To = backward::Arguments;
    return make_plan(
        choice, problem, call, memory,
        {{"value", call.value, [](To& to, void* data) { to.value.data = data; }},
         {"sampling_locations", call.sampling_locations, [](To& to, void* data) { to.sampling_locations.data = data; }},
         {"attention_weights", call.attention_weights, [](To& to, void* data) { to.attention_weights.data = data; }},
         {"grad_output", call.grad_output, [](To& to, void* data) { to.grad_output.data = data; }},
         {"gradients.value", call.gradients.value, [](To& to, void* data) { to.gradients.value.data = data; }, true},
         {"gradients.sampling_locations", call.gradients.sampling_locations,
          [](To& to, void* data) { to.gradients.sampling_locations.data = data; }, true},
         {"gradients.attention_weights", call.gradients.attention_weights,
          [](To& to, void* data) { to.gradients.attention_weights.data = data; }, true}});
  };
  return with_backward_call(value, levels, sampling_locations, attention_weights, grad_output, gradients, options,
                            plan);
}

void ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                             ConstTensorView sampling_locations, ConstTensorView attention_weights,
                             ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                             const MsDeformAttnOptions& options) {
  with_backward_call(value, levels, sampling_locations, attention_weights, grad_output, gradients, options, kRun);
}

std::size_t ms_deform_attn_backward_workspace(ConstTensorView value, std::span<const LevelShape> levels,
                                              ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                              ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                                              const MsDeformAttnOptions& options) {
  return with_backward_call(value, levels, sampling_locations, attention_weights, grad_output, gradients, options,
                            kWorkspace);
}

}  // namespace tmaops
