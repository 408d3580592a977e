// The backward pass to the values: an operator of its own over the same timeline.
#pragma once

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample_backward {

using resample::Rows;
using resample::Targets;
using resample::Timeline;

struct Problem : resample::Problem {
  DType given = DType::f32;             // of the values of the forward pass, which min and max need
  bool empty() const { return false; }  // without targets gradients are zeros, without samples targets are checked
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Whether the gradient depends on the values of the forward pass.
bool needs_values(const Problem& problem);

/// The data of one call.
struct Arguments : resample::TimeArguments {
  Rows grad_output{};
  Rows grad_values{};  // data is written
  Rows values{};       // of the forward pass; data null: not needed
  /// Those of the forward call that the backward pass is the transpose of.
  resample::Arguments forward() const { return {*this, grad_values, grad_output}; }
};

using Config = OneWay;

Problem make_problem(const ConstTensorView& source_times, const Targets& targets, const ConstTensorView& grad_output,
                     const TensorView& grad_values, const ResampleOptions& options);
Arguments make_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                         const ConstTensorView& grad_output, const TensorView& grad_values,
                         const ResampleOptions& options);

VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name = "",
                                          VariantTable<Problem, Arguments, Config> table = variants());

}  // namespace tmaops::ops::resample_backward
