// Every GPU variant of resampling on one problem, held against the reference on the CPU.
#pragma once

#include <map>
#include <optional>

#include "ops/resample/gpu/problems.hpp"
#include "ops/resample/problem.hpp"

namespace tmaops::test {

/// How often each variant ran.
inline std::map<std::string, int>& runs() {
  static std::map<std::string, int> counts;
  return counts;
}

/// A variant in every configuration it has for a problem: "narrow_rows", "touched_rows_lane/1 chunk". None where it
/// refuses.
template <class Variant>
std::vector<std::string> ways(const Variant& variant, const ops::resample::Problem& problem) {
  using Config = ops::resample::Config;
  const DeviceInfo& device = device_info(problem.device);
  std::vector<std::string> names;
  if (!try_variant(variant, problem, device)) return names;
  for (const Config& config : configs_of(variant, problem, device))
    names.push_back(Choice<ops::resample::Problem, ops::resample::Arguments, Config>{&variant, config}.name());
  return names;
}

/// Runs every variant that takes the problem in every configuration, with and without dependent launch, outputs
/// poisoned and between canaries.
/// `device_outside`: the policy on the GPU, where it is not the reference's.
inline void check(const ProblemShape& c, std::uint64_t seed, std::optional<Outside> device_outside = {}) {
  SCOPED_TRACE(text(c) + ", seed " + std::to_string(seed));
  Made made = make(c, seed);
  const Buffer poisoned = *made.output;
  const Buffer poisoned_valid = c.valid ? *made.valid : Buffer(DType::u8, {0});

  ResampleOptions options = made.options;
  options.variant = "reference";
  if (c.valid) options.valid = made.valid->view();
  if (c.grid)
    resample(*made.values, *made.source, made.grid, *made.output, options);
  else
    resample(*made.values, *made.source, *made.target, *made.output, options);

  const Mirror values(*made.values, c.shift);
  const Mirror source(*made.source, c.shift);
  const Mirror target(c.grid ? Buffer(c.times, {0}) : *made.target, c.shift);
  bool curved = false;
  for (const ChannelGroup& group : c.groups)
    curved |= group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp;
  const double f32_error = (curved ? 4e-6 : 2e-6) * (c.outside == Outside::extrapolate ? (curved ? 200 : 20) : 1);
  const double absolute = f32_error * (c.dtype == DType::f64 ? 1e-6 : 1);
  const double relative = c.dtype == DType::f64   ? 1e-12
                          : c.dtype == DType::f32 ? 2e-6
                          : c.dtype == DType::f16 ? 0x1p-10
                                                  : 0x1p-7;

  if (device_outside) options.outside = *device_outside;
  for (const auto& variant : ops::resample::variants()) {
    if (!test::runs_here(variant)) continue;
    for (const bool dependent : {false, true}) {
      const Mirror output(poisoned, c.shift);
      const Mirror valid(poisoned_valid, 0);
      options.dependent_launch = dependent;
      if (c.valid) options.valid = valid.view();
      const ops::resample::Targets targets = c.grid ? ResampleTargets(made.grid) : ResampleTargets(target.view());
      const std::vector<std::string> names =
          ways(variant, ops::resample::make_problem(values.view(), source.view(), targets, output.view(), options));
      ASSERT_TRUE(variant.name != "element_search" || !names.empty());
      for (const std::string& name : names) {
        output.reset();
        valid.reset();
        options.variant = name;
        if (c.grid)
          resample(values.view(), source.view(), made.grid, output.view(), options);
        else
          resample(values.view(), source.view(), target.view(), output.view(), options);
        check_cuda(cudaDeviceSynchronize(), name);
        ++runs()[std::string(variant.name)];
        const std::string what = name + (dependent ? ", dependent launch" : "");
        expect_close(output.download(), *made.output, relative, absolute, what.c_str());
        if (c.valid) expect_close(valid.download(), *made.valid, 0, 0, (what + ", valid").c_str());
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace tmaops::test
