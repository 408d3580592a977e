// The public functions: check, select, launch.
#include <memory>

#include "core/entry.hpp"
#include "core/repeated_launches.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/problem_backward.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops {

namespace {

/// A forward call, ready to be launched.
struct ForwardCall {
  ops::ms_deform_attn::Problem problem;
  ops::ms_deform_attn::Arguments arguments;
  const Variant<ops::ms_deform_attn::Problem, ops::ms_deform_attn::Arguments>* variant;

  void launch(Stream stream) const { variant->launch(problem, arguments, stream); }
};

ForwardCall make_call(const ConstTensorView& value, std::span<const LevelShape> levels,
                      const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                      const TensorView& output, const MsDeformAttnOptions& options, bool planned) {
  ops::ms_deform_attn::Problem problem =
      ops::ms_deform_attn::make_problem(value, levels, sampling_locations, attention_weights, output, options);
  const auto& variant = ops::ms_deform_attn::select(problem, device_info(problem.device), options.variant);
  ForwardCall call{std::move(problem),
                   {.value = value,
                    .sampling_locations = sampling_locations,
                    .attention_weights = attention_weights,
                    .reference_points = options.reference_points,
                    .padding_mask = options.padding_mask,
                    .output = output,
                    .dependent_launch = options.dependent_launch,
                    .planned = planned},
                   &variant};
  if (variant.prepare != nullptr) call.arguments.prepared = variant.prepare(call.problem, call.arguments);
  return call;
}

}  // namespace

struct MsDeformAttnPlan::State {
  ForwardCall call;
  std::shared_ptr<const RepeatedLaunches> launches{};  // on a GPU
};

MsDeformAttnPlan::MsDeformAttnPlan(ConstTensorView value, std::span<const LevelShape> levels,
                                   ConstTensorView sampling_locations, ConstTensorView attention_weights,
                                   TensorView output, const MsDeformAttnOptions& options)
    : state_(public_entry("ms_deform_attn", [&] {
        auto state = std::make_unique<State>(
            State{make_call(value, levels, sampling_locations, attention_weights, output, options, true)});
        state->launches = RepeatedLaunches::of(state->call.problem.device, [&] { state->call.launch(nullptr); });
        return state;
      })) {}

MsDeformAttnPlan::~MsDeformAttnPlan() = default;
MsDeformAttnPlan::MsDeformAttnPlan(MsDeformAttnPlan&&) noexcept = default;
MsDeformAttnPlan& MsDeformAttnPlan::operator=(MsDeformAttnPlan&&) noexcept = default;

void MsDeformAttnPlan::run(Stream stream) const {
  public_entry("ms_deform_attn",
               [&] { state_->launches ? state_->launches->run(stream) : state_->call.launch(stream); });
}

std::string_view MsDeformAttnPlan::variant() const { return state_->call.variant->name; }

void ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                    ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  public_entry("ms_deform_attn", [&] {
    make_call(value, levels, sampling_locations, attention_weights, output, options, false).launch(options.stream);
  });
}

struct MsDeformAttnBackwardPlan::State {
  ops::ms_deform_attn_backward::Problem problem;
  ops::ms_deform_attn_backward::Arguments arguments;
  const Variant<ops::ms_deform_attn_backward::Problem, ops::ms_deform_attn_backward::Arguments>* variant;

  State(const ConstTensorView& value, std::span<const LevelShape> levels, const ConstTensorView& sampling_locations,
        const ConstTensorView& attention_weights, const ConstTensorView& grad_output,
        const MsDeformAttnGradients& gradients, const MsDeformAttnOptions& options)
      : problem(ops::ms_deform_attn_backward::make_problem(value, levels, sampling_locations, attention_weights,
                                                           grad_output, gradients, options)),
        arguments{.value = value,
                  .sampling_locations = sampling_locations,
                  .attention_weights = attention_weights,
                  .grad_output = grad_output,
                  .gradients = gradients,
                  .dependent_launch = options.dependent_launch},
        variant(&ops::ms_deform_attn_backward::select(problem, device_info(problem.forward.device), options.variant)) {
    if (variant->prepare != nullptr) arguments.prepared = variant->prepare(problem, arguments);
  }
  void run(Stream stream) const { variant->launch(problem, arguments, stream); }
};

MsDeformAttnBackwardPlan::MsDeformAttnBackwardPlan(ConstTensorView value, std::span<const LevelShape> levels,
                                                   ConstTensorView sampling_locations,
                                                   ConstTensorView attention_weights, ConstTensorView grad_output,
                                                   const MsDeformAttnGradients& gradients,
                                                   const MsDeformAttnOptions& options)
    : state_(public_entry("ms_deform_attn_backward", [&] {
        return std::make_unique<State>(value, levels, sampling_locations, attention_weights, grad_output, gradients,
                                       options);
      })) {}

MsDeformAttnBackwardPlan::~MsDeformAttnBackwardPlan() = default;
MsDeformAttnBackwardPlan::MsDeformAttnBackwardPlan(MsDeformAttnBackwardPlan&&) noexcept = default;
MsDeformAttnBackwardPlan& MsDeformAttnBackwardPlan::operator=(MsDeformAttnBackwardPlan&&) noexcept = default;

void MsDeformAttnBackwardPlan::run(Stream stream) const {
  public_entry("ms_deform_attn_backward", [&] { state_->run(stream); });
}

std::string_view MsDeformAttnBackwardPlan::variant() const { return state_->variant->name; }

void ms_deform_attn_backward(ConstTensorView value, std::span<const LevelShape> levels,
                             ConstTensorView sampling_locations, ConstTensorView attention_weights,
                             ConstTensorView grad_output, const MsDeformAttnGradients& gradients,
                             const MsDeformAttnOptions& options) {
  MsDeformAttnBackwardPlan(value, levels, sampling_locations, attention_weights, grad_output, gradients, options)
      .run(options.stream);
}

}  // namespace tmaops
