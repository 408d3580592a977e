// Argument checks of the backward operator.
#include "ops/ms_deform_attn/backward/problem.hpp"

#include <array>
#include <utility>

#include "core/checks.hpp"

namespace tmaops::ops::ms_deform_attn_backward {
namespace {

bool given(const TensorView& tensor) { return ConstTensorView(tensor).given(); }

void same_shape(const ArgumentChecks& checks, std::string_view argument, const TensorView& tensor,
                std::string_view other_argument, const Layout& other) {
  bool same = tensor.rank == other.rank;
  for (std::size_t i = 0; same && i < static_cast<std::size_t>(other.rank); ++i)
    same = tensor.shape[i] == other.shape[i];
  if (!same)
    checks.fail(ErrorCode::shape_mismatch, argument, tensor.shape_text(),
                other.shape_text() + ", as " + std::string(other_argument));
}

}  // namespace

std::string Problem::text() const {
  std::string text = forward.text();
  text.pop_back();
  text += ", direction: backward";
  if (grad_value && grad_sampling_locations && grad_attention_weights) return text + "}";
  std::string wanted;
  if (grad_value) wanted += "value";
  if (grad_sampling_locations) wanted += (wanted.empty() ? "" : ", ") + std::string("sampling_locations");
  if (grad_attention_weights) wanted += (wanted.empty() ? "" : ", ") + std::string("attention_weights");
  return text + ", gradients: [" + wanted + "]}";
}

Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                     const ConstTensorView& grad_output, const MsDeformAttnGradients& gradients,
                     const MsDeformAttnOptions& options) {
  constexpr std::string_view kOp = "ms_deform_attn_backward";
  const ArgumentChecks checks(kOp);
  checks.views({{"grad_output", grad_output},
                {"gradients.value", gradients.value},
                {"gradients.sampling_locations", gradients.sampling_locations},
                {"gradients.attention_weights", gradients.attention_weights}});
  const auto refuse = [&](bool given, std::string_view option, std::string_view instead) {
    if (given)
      checks.fail(ErrorCode::bad_parameter, option, "given", "nothing: it has no gradient", std::string(instead));
  };
  refuse(options.softmax, "softmax", "Pass the weights, and take the gradient of the softmax afterwards.");
  refuse(options.reference_points.given(), "reference_points", "Pass the locations.");
  refuse(options.padding_mask.given(), "padding_mask", "Pass a value whose masked pixels are 0.");
  refuse(options.bordered_value, "bordered_value", "Pass a view of each level without its border.");
  Problem problem;
  problem.forward =
      ms_deform_attn::make_input_problem(kOp, value, levels, sampling_locations, attention_weights, options);
  ms_deform_attn::Problem& forward = problem.forward;

  ms_deform_attn::check_rows(checks, "grad_output", grad_output, value, forward);
  checks.dtype("grad_output", grad_output, {value.dtype, DType::f32});
  checks.same_device("grad_output", grad_output, "value", value);
  checks.memory("grad_output", grad_output);
  problem.grad_output_dtype = grad_output.dtype;
  problem.deterministic = options.deterministic;

  const DType compute = value.dtype == DType::f64 ? DType::f64 : DType::f32;
  struct Gradient {
    std::string_view name;
    const TensorView& tensor;
    std::string_view of;
    const ConstTensorView& input;
    DType compute;
    bool& wanted;
    DType& dtype;
  };
  const std::array<Gradient, 3> all{
      Gradient{"gradients.value", gradients.value, "value", value, DType::f32, problem.grad_value,
               problem.grad_value_dtype},
      Gradient{"gradients.sampling_locations", gradients.sampling_locations, "sampling_locations", sampling_locations,
               compute, problem.grad_sampling_locations, problem.grad_sampling_locations_dtype},
      Gradient{"gradients.attention_weights", gradients.attention_weights, "attention_weights", attention_weights,
               compute, problem.grad_attention_weights, problem.grad_attention_weights_dtype}};
  const std::array<std::pair<std::string_view, const ConstTensorView*>, 4> inputs{
      {{"value", &value},
       {"sampling_locations", &sampling_locations},
       {"attention_weights", &attention_weights},
       {"grad_output", &grad_output}}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Gradient& gradient = all[i];
    if (!given(gradient.tensor)) continue;
    gradient.wanted = true;
    gradient.dtype = gradient.tensor.dtype;
    same_shape(checks, gradient.name, gradient.tensor, gradient.of, gradient.input);
    checks.dtype(gradient.name, gradient.tensor, {gradient.compute, gradient.input.dtype});
    checks.same_device(gradient.name, gradient.tensor, "value", value);
    checks.writable(gradient.name, gradient.tensor);
    for (const auto& [name, input] : inputs) checks.no_overlap(gradient.name, gradient.tensor, name, *input);
    for (std::size_t j = 0; j < i; ++j)
      if (given(all[j].tensor)) checks.no_overlap(gradient.name, gradient.tensor, all[j].name, all[j].tensor);
  }
  return problem;
}

}  // namespace tmaops::ops::ms_deform_attn_backward
