// The gradient to the values on the GPU: every variant against the reference on the CPU, and bit-identical from run to
// run.
#include <map>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/gpu/problems.hpp"

namespace tmaops::test {
namespace {

/// How often each variant ran.
std::map<std::string, int>& backward_runs() {
  static std::map<std::string, int> counts;
  return counts;
}

/// Gradients of `c` by every GPU variant; the two gradients have dtypes `given` and `made`.
void check_backward(const ProblemShape& c, DType given, DType made_type, std::uint64_t seed) {
  SCOPED_TRACE(text(c) + ", gradients " + std::string(to_string(given)) + " -> " + std::string(to_string(made_type)) +
               ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Made made = make(c, seed);
  Buffer grad_output(given, made.output->layout());
  grad_output.fill_normal(random);
  Buffer want(made_type, made.values->layout());
  const Buffer poisoned = want;
  ResampleOptions options = made.options;
  options.variant = "reference_backward";
  if (c.grid)
    resample_backward(*made.source, made.grid, grad_output, want, options);
  else
    resample_backward(*made.source, *made.target, grad_output, want, options);

  const Mirror source(*made.source, c.shift);
  const Mirror target(c.grid ? Buffer(c.times, {0}) : *made.target, c.shift);
  const Mirror given_gradient(grad_output, c.shift);
  const double scale = static_cast<double>(c.targets) * (c.outside == Outside::extrapolate ? 20 : 1);
  const double absolute = (made_type == DType::f64 ? 1e-12 : 2e-6) * scale;
  const double relative = made_type == DType::f64   ? 1e-12
                          : made_type == DType::f32 ? 4e-6
                          : made_type == DType::f16 ? 0x1p-10
                                                    : 0x1p-7;
  for (const auto& variant : ops::resample_backward::variants()) {
    if (!test::runs_here(variant)) continue;
    options.variant = std::string(variant.name);
    std::vector<Buffer> results;
    for (const bool dependent : {false, true}) {
      options.dependent_launch = dependent;
      const Mirror gradient(poisoned, c.shift);
      try {
        const ConstTensorView from = given_gradient.view();
        const Plan plan = c.grid ? plan_resample_backward(source.view(), made.grid, from, gradient.view(), options)
                                 : plan_resample_backward(source.view(), target.view(), from, gradient.view(), options);
        plan.run();
        if (dependent) plan.run();  // the second may start before the first has ended
        check_cuda(cudaDeviceSynchronize(), variant.name);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
        ASSERT_NE(variant.name, "row_gather") << error.what();
        break;
      }
      ++backward_runs()[options.variant];
      results.push_back(gradient.download());
      expect_close(results.back(), want, relative, absolute, variant.name.data());
      if (::testing::Test::HasFatalFailure()) return;
    }
    if (results.size() == 2) {
      EXPECT_EQ(results[0].bits(), results[1].bits()) << variant.name << " differs from run to run";
    }
  }
}

class GpuResampleBackward : public ::testing::TestWithParam<int> {};

TEST_P(GpuResampleBackward, agrees_with_the_reference_on_random_problems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(3000 + GetParam()));
  for (int i = 0; i < problems(20); ++i) {
    ProblemShape c = random_case(random);
    c.valid = false;
    for (ChannelGroup& group : c.groups)
      if (group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp)
        group.interpolation = Interpolation::linear;
    const DType other = random() % 3 == 0 ? DType::f32 : c.dtype;
    const bool widened = random() % 2 == 0;
    check_backward(c, widened ? other : c.dtype, widened ? c.dtype : other, random());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuResampleBackward, ::testing::Range(0, 4));

TEST(GpuResampleBackwardShapes, measured_shapes_of_each_variant) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 17;
  for (const auto& [samples, targets, channels] : std::vector<std::array<std::int64_t, 3>>{{20000, 10000, 14},
                                                                                           {40, 9000, 64},
                                                                                           {512, 512, 128},
                                                                                           {500, 250, 128},
                                                                                           {100, 2048, 256},
                                                                                           {4096, 1024, 32},
                                                                                           {100, 50, 7}})
    for (const Interpolation mode : {Interpolation::linear, Interpolation::nearest}) {
      ProblemShape c{.batch = 3,
                     .samples = samples,
                     .targets = targets,
                     .channels = channels,
                     .dtype = DType::bf16,
                     .groups = one_group(channels, mode)};
      check_backward(c, DType::bf16, DType::bf16, ++seed);
      c.dtype = DType::f32;
      c.times = DType::i64;
      check_backward(c, DType::f32, DType::f32, ++seed);
      if (HasFailure()) return;
    }
  for (const auto& variant : ops::resample_backward::variants())
    if (test::runs_here(variant)) {
      EXPECT_GE(backward_runs()[std::string(variant.name)], 4) << variant.name;
    }
}

TEST(GpuResampleBackwardShapes, f64_values) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(3100);
  const int before = backward_runs()["row_gather"];
  for (int i = 0; i < problems(20); ++i) {
    ProblemShape c = random_case(random);
    c.dtype = DType::f64;
    c.valid = false;
    for (ChannelGroup& group : c.groups) group.interpolation = Interpolation::linear;
    check_backward(c, DType::f64, DType::f64, random());
    if (HasFailure()) return;
  }
  EXPECT_EQ(backward_runs()["row_gather"], before + 2 * problems(20));
}

TEST(GpuResampleBackwardShapes, targets_where_nobody_expects_them) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 60;
  for (const std::int64_t channels : {16, 5})
    for (const std::int64_t targets : {900, 5000})
      for (const bool unsorted : {false, true})
        for (const bool clustered : {false, true}) {
          check_backward({.samples = 2000,
                          .targets = targets,
                          .channels = channels,
                          .groups = one_group(channels, Interpolation::linear),
                          .unsorted = unsorted,
                          .clustered = clustered},
                         DType::f32, DType::f32, ++seed);
          if (HasFailure()) return;
        }
}

}  // namespace
}  // namespace tmaops::test
