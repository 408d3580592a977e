// The public functions: check, select, launch.
#include <memory>

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
    : state_(std::make_unique<State>(
          State{make_call(value, levels, sampling_locations, attention_weights, output, options, true)})) {
  state_->launches = RepeatedLaunches::of(state_->call.problem.device, [&] { state_->call.launch(nullptr); });
}

MsDeformAttnPlan::~MsDeformAttnPlan() = default;
MsDeformAttnPlan::MsDeformAttnPlan(MsDeformAttnPlan&&) noexcept = default;
MsDeformAttnPlan& MsDeformAttnPlan::operator=(MsDeformAttnPlan&&) noexcept = default;

void MsDeformAttnPlan::run(Stream stream) const {
  state_->launches ? state_->launches->run(stream) : state_->call.launch(stream);
}

std::string_view MsDeformAttnPlan::variant() const { return state_->call.variant->name; }

void ms_deform_attn(ConstTensorView value, std::span<const LevelShape> levels, ConstTensorView sampling_locations,
                    ConstTensorView attention_weights, TensorView output, const MsDeformAttnOptions& options) {
  make_call(value, levels, sampling_locations, attention_weights, output, options, false).launch(options.stream);
}

struct MsDeformAttnBackwardPlan::State {
  ops::ms_deform_attn_backward::Problem problem;
  ops::ms_deform_attn_backward::Arguments arguments;
  const Variant<ops::ms_deform_attn_backward::Problem, ops::ms_deform_attn_backward::Arguments>* variant;
};

MsDeformAttnBackwardPlan::MsDeformAttnBackwardPlan(ConstTensorView value, std::span<const LevelShape> levels,
                                                   ConstTensorView sampling_locations,
                                                   ConstTensorView attention_weights, ConstTensorView grad_output,
                                                   const MsDeformAttnGradients& gradients,
                                                   const MsDeformAttnOptions& options) {
  namespace backward = ops::ms_deform_attn_backward;
  backward::Problem problem =
      backward::make_problem(value, levels, sampling_locations, attention_weights, grad_output, gradients, options);
  const auto& variant = backward::select(problem, device_info(problem.forward.device), options.variant);
  state_ = std::make_unique<State>(State{std::move(problem),
                                         {.value = value,
                                          .sampling_locations = sampling_locations,
                                          .attention_weights = attention_weights,
                                          .grad_output = grad_output,
                                          .gradients = gradients,
                                          .dependent_launch = options.dependent_launch},
                                         &variant});
  if (variant.prepare != nullptr) state_->arguments.prepared = variant.prepare(state_->problem, state_->arguments);
}

MsDeformAttnBackwardPlan::~MsDeformAttnBackwardPlan() = default;
MsDeformAttnBackwardPlan::MsDeformAttnBackwardPlan(MsDeformAttnBackwardPlan&&) noexcept = default;
MsDeformAttnBackwardPlan& MsDeformAttnBackwardPlan::operator=(MsDeformAttnBackwardPlan&&) noexcept = default;

void MsDeformAttnBackwardPlan::run(Stream stream) const {
  state_->variant->launch(state_->problem, state_->arguments, stream);
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
