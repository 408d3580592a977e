// The gradient to the values: against finite differences of the forward pass, and its edges.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

class ResampleBackwardVariant : public ::testing::TestWithParam<std::string> {};

TEST_P(ResampleBackwardVariant, agrees_with_finite_differences) {
  for (const Interpolation mode :
       {Interpolation::linear, Interpolation::previous, Interpolation::next, Interpolation::nearest,
        Interpolation::mean, Interpolation::sum, Interpolation::min, Interpolation::max, Interpolation::lowpass})
    for (const Outside outside : {Outside::hold, Outside::extrapolate})
      for (const bool sorted : {true, false}) {
        CaseShape shape;
        shape.batch = 2;
        shape.source = 6;
        shape.target = 9;
        shape.channels = 2;
        shape.values = DType::f64;
        shape.groups = {mode};
        shape.outside = outside;
        shape.sorted = sorted;
        ResampleCase c(shape);
        Buffer grad_output = c.output();
        grad_output.fill_normal(c.random());
        Buffer gradient = c.gradients(DType::f64);
        c.run_backward(GetParam(), grad_output, gradient);
        const auto loss = [&] {
          Buffer output = c.output();
          c.run("reference", output, nullptr);
          double sum = 0;
          for (std::int64_t i = 0; i < output.layout().size(); ++i) sum += output.get(i) * grad_output.get(i);
          return sum;
        };
        // All but min and max are linear; those are so as long as the extreme stays the same sample.
        const double step = mode == Interpolation::min || mode == Interpolation::max ? 1e-6 : 0.5;
        for (std::int64_t i = 0; i < c.values().layout().size(); ++i) {
          const double value = c.values().get(i);
          c.values().set(i, value + step);
          const double up = loss();
          c.values().set(i, value - step);
          const double down = loss();
          c.values().set(i, value);
          EXPECT_NEAR(gradient.get(i), (up - down) / (2 * step), 1e-11 / step)
              << "element " << i << ", mode " << static_cast<int>(mode);
        }
      }
}

TEST_P(ResampleBackwardVariant, writes_zero_where_no_target_touches) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5};
  const std::vector<double> q{2.25};
  const std::vector<float> grad_output{4};
  std::vector<float> gradient(6, NAN);
  resample_backward(view(x.data(), {6}), view(q.data(), {1}), view(grad_output.data(), {1, 1, 1}),
                    view(gradient.data(), {1, 6, 1}), {.variant = GetParam()});
  EXPECT_EQ(gradient, (std::vector<float>{0, 0, 3, 1, 0, 0}));
  // And for a trajectory without targets, whose times are not looked at.
  std::fill(gradient.begin(), gradient.end(), NAN);
  const std::vector<double> unsorted{1, 0, 0, 0, 0, 0};
  resample_backward(view(unsorted.data(), {6}), view(q.data(), {0}), view(grad_output.data(), {1, 0, 1}),
                    view(gradient.data(), {1, 6, 1}), {.variant = GetParam()});
  EXPECT_EQ(gradient, std::vector<float>(6, 0));
}

TEST_P(ResampleBackwardVariant, nan_gradients_reach_only_what_the_target_touched) {
  const std::vector<double> x{0, 1, 10, 11};
  const std::vector<double> q{-1, 1, 5, 10.5};
  const std::vector<float> grad_output{NAN, NAN, NAN, 2};
  std::vector<float> gradient(4);
  // The first is outside, the third inside a gap: NaN in the forward pass, so no gradient.
  resample_backward(view(x.data(), {4}), view(q.data(), {4}), view(grad_output.data(), {1, 4, 1}),
                    view(gradient.data(), {1, 4, 1}), {.outside = Outside::nan, .max_gap = 2.0, .variant = GetParam()});
  EXPECT_EQ(gradient[0], 0);
  EXPECT_TRUE(std::isnan(gradient[1]));
  EXPECT_EQ(gradient[2], 1);
  EXPECT_EQ(gradient[3], 1);
}

TEST_P(ResampleBackwardVariant, long_trajectories_are_cut_without_a_trace) {
  // One trajectory, long enough to be cut into slices: as the reference, on samples at the cuts too.
  for (const Outside outside : {Outside::hold, Outside::extrapolate, Outside::nan}) {
    CaseShape shape;
    shape.batch = 1;
    shape.source = 9000;
    shape.target = 5000;
    shape.channels = 3;
    shape.groups = {Interpolation::linear, Interpolation::nearest};
    shape.times = DType::i64;
    shape.outside = outside;
    ResampleCase c(shape);
    Buffer grad_output = c.output();
    grad_output.fill_normal(c.random());
    Buffer got = c.gradients(DType::f32);
    Buffer want = c.gradients(DType::f32);
    c.run_backward(GetParam(), grad_output, got);
    c.run_backward("reference_backward", grad_output, want);
    EXPECT_EQ(difference_of(got, want, {1e-5, 1e-5}), "");
  }
}

TEST_P(ResampleBackwardVariant, is_the_transpose_of_the_forward_pass_outside) {
  // <resample(y), g> = <y, resample_backward(g)> for targets that are extrapolated.
  const std::vector<double> x{0, 1, 2.5};
  const std::vector<double> q{-100, -0.25, 2.75, 60};
  const std::vector<float> y{3, 3.5, -1};
  const std::vector<float> g{1, -2, 0.5, 4};
  std::vector<float> out(4, NAN);
  std::vector<float> gradient(3, NAN);
  const ResampleOptions options{.outside = Outside::extrapolate};
  resample(view(y.data(), {1, 3, 1}), view(x.data(), {3}), view(q.data(), {4}), view(out.data(), {1, 4, 1}), options);
  ResampleOptions backward = options;
  backward.variant = GetParam();
  resample_backward(view(x.data(), {3}), view(q.data(), {4}), view(g.data(), {1, 4, 1}),
                    view(gradient.data(), {1, 3, 1}), backward);
  double forward_sum = 0;
  double backward_sum = 0;
  for (std::size_t t = 0; t < 4; ++t) forward_sum += static_cast<double>(out[t]) * static_cast<double>(g[t]);
  for (std::size_t i = 0; i < 3; ++i) backward_sum += static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
  EXPECT_NEAR(forward_sum, backward_sum, 2e-6 * 1000);  // terms of up to 1,000
}

TEST_P(ResampleBackwardVariant, targets_of_an_empty_trajectory_must_be_finite) {
  const std::vector<double> q{0.5, std::nan("")};
  const std::vector<float> g{1, 2};
  expect_error(
      ErrorCode::times_not_finite,
      [&] {
        resample_backward(ConstTensorView(q.data(), Layout::contiguous({1, 0})), view(q.data(), {2}),
                          view(g.data(), {1, 2, 1}),
                          TensorView(static_cast<float*>(nullptr), Layout::contiguous({1, 0, 1})),
                          {.outside = Outside::nan, .variant = GetParam()});
      },
      "target_times[0, 1]");
}

TEST_P(ResampleBackwardVariant, errors_are_named) {
  using enum ErrorCode;
  const std::vector<double> x{0, 1, 2};
  std::vector<double> q{0.5, 1.5};
  const std::vector<float> grad_output(8, 1);
  std::vector<float> gradient(12, -1);
  const auto run = [&](ResampleOptions options) {
    options.variant = GetParam();
    resample_backward(view(x.data(), {3}), view(q.data(), {2}), view(grad_output.data(), {1, 2, 4}),
                      view(gradient.data(), {1, 3, 4}), options);
  };
  expect_error(
      bad_parameter, [&] { run({.interpolation = Interpolation::cubic}); }, "cubic", "not linear in the values");
  expect_error(bad_parameter, [&] { run({.interpolation = Interpolation::slerp}); }, "slerp");
  expect_error(bad_parameter, [&] { run({.interpolation = Interpolation::any}); }, "any", "any and count are steps");
  expect_error(bad_parameter, [&] { run({.interpolation = Interpolation::count}); }, "count");
  expect_error(bad_parameter, [&] { run({.interpolation = Interpolation::max}); }, "values", "of the forward pass");
  q[1] = 3;
  expect_error(target_outside, [&] { run({.outside = Outside::error}); }, "target_times[0, 1]");
  q[1] = std::nan("");
  expect_error(times_not_finite, [&] { run({}); }, "target_times[0, 1]");
  q[1] = 1.5;
  std::vector<double> wide(12);
  expect_error(
      dtype_mismatch,
      [&] {
        resample_backward(view(x.data(), {3}), view(q.data(), {2}), view(grad_output.data(), {1, 2, 4}),
                          view(wide.data(), {1, 3, 4}), {.variant = GetParam()});
      },
      "f64 on both sides");
  expect_error(
      overlap,
      [&] {
        resample_backward(view(x.data(), {3}), view(q.data(), {2}), view(std::as_const(gradient).data(), {1, 2, 4}),
                          view(gradient.data(), {1, 3, 4}), {.variant = GetParam()});
      },
      "grad_values", "grad_output");
  const std::vector<double> bad{0, 2, 1};
  expect_error(
      times_not_sorted,
      [&] {
        resample_backward(view(bad.data(), {3}), view(q.data(), {2}), view(grad_output.data(), {1, 2, 4}),
                          view(gradient.data(), {1, 3, 4}), {.variant = GetParam()});
      },
      "source_times[0, 2]");
  run({});
  EXPECT_EQ(gradient, (std::vector<float>{0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5}));
}

INSTANTIATE_TEST_SUITE_P(Variants, ResampleBackwardVariant, ::testing::ValuesIn(cpu_variants("resample_backward")),
                         [](const auto& variant) { return variant.param; });

TEST(ResampleBackwardPlan, keeps_its_own_offsets_and_runs_again) {
  const std::vector<double> x{0, 1, 2, 0, 1};
  std::vector<double> q{0.5, 1.5, 0.5};
  const std::vector<float> grad_output{2, 4, 8};
  std::vector<float> gradient(5, NAN);
  std::optional<Plan> plan;
  {
    const std::vector<std::int64_t> source{0, 3, 5};
    const std::vector<std::int64_t> target{0, 2, 3};
    plan = plan_resample_backward(view(x.data(), {5}), view(q.data(), {3}), view(grad_output.data(), {3, 1}),
                                  view(gradient.data(), {5, 1}), {.source_offsets = source, .target_offsets = target});
  }
  const Plan moved = std::move(*plan);
  moved.run();
  EXPECT_EQ(gradient, (std::vector<float>{1, 3, 2, 4, 4}));
  q[2] = 0;
  moved.run();
  EXPECT_EQ(gradient, (std::vector<float>{1, 3, 2, 8, 0}));
  EXPECT_FALSE(moved.variant().empty());
}

}  // namespace
}  // namespace tmaops::test
