// The problem a backward call poses, after every argument was checked, and the views it works on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn_backward {

struct Problem {
  ms_deform_attn::Problem forward{};
  DType grad_output_dtype = DType::f32;
  bool grad_value = false;  // which gradients are wanted
  bool grad_sampling_locations = false;
  bool grad_attention_weights = false;
  DType grad_value_dtype = DType::f32;
  DType grad_sampling_locations_dtype = DType::f32;
  DType grad_attention_weights_dtype = DType::f32;
  bool deterministic = false;

  /// The problem in the syntax of the configuration.
  std::string text() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// For core/choice_cache.hpp.
inline std::size_t hash_of(const Problem& problem) { return hash_of(problem.forward); }

struct Arguments {
  ConstTensorView value{};
  ConstTensorView sampling_locations{};
  ConstTensorView attention_weights{};
  ConstTensorView grad_output{};
  MsDeformAttnGradients gradients{};
  ms_deform_attn::LevelViews level_views{};
  bool dependent_launch = false;
  Workspace* workspace = nullptr;
};

using Config = OneWay;

/// Checks every argument of ms_deform_attn_backward; throws Error as its header says.
Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                     const ConstTensorView& grad_output, const MsDeformAttnGradients& gradients,
                     const MsDeformAttnOptions& options);

/// Best first, reference last.
VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();

/// What runs: what the name says, or the best there is when it is empty.
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name);

}  // namespace tmaops::ops::ms_deform_attn_backward
