// Counting what is wrong with times: an operator of its own over the same timeline.
#pragma once

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample_violations {

using resample::Targets;
using resample::Timeline;

struct Problem : resample::Problem {
  bool empty() const { return false; }  // counts are written in any case
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The data of one call.
struct Arguments : resample::TimeArguments {
  std::int64_t* counts = nullptr;               // written
  std::int64_t counters = kResampleViolations;  // of them
};

using Config = OneWay;

Problem make_problem(const ConstTensorView& source_times, const Targets& targets, const TensorView& counts,
                     const ResampleOptions& options);
Arguments make_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                         const TensorView& counts, const ResampleOptions& options);

VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name = "");

}  // namespace tmaops::ops::resample_violations
