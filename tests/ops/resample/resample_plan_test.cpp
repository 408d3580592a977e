// Plans of resampling, and which variant a call gets.
#include <gtest/gtest.h>

#include <optional>

#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::test {
namespace {

TEST(ResamplePlan, keeps_its_own_offsets_and_runs_again) {
  std::vector<float> values{0, 1, 2, 10, 20};
  const std::vector<double> x{0, 1, 2, 0, 1};
  std::vector<double> q{0.5, 1.5, 0.5};
  std::vector<float> out(3);
  std::optional<Plan> plan;
  {
    const std::vector<std::int64_t> source{0, 3, 5};
    const std::vector<std::int64_t> target{0, 2, 3};
    plan = plan_resample(view(values.data(), {5, 1}), view(x.data(), {5}), view(q.data(), {3}),
                         view(out.data(), {3, 1}), {.source_offsets = source, .target_offsets = target});
  }
  Plan moved = std::move(*plan);
  moved.run();
  EXPECT_EQ(out, (std::vector<float>{0.5F, 1.5F, 15}));
  values[0] = 1;
  q[2] = 0;
  moved.run();
  EXPECT_EQ(out, (std::vector<float>{1, 1.5F, 10}));
  EXPECT_FALSE(moved.variant().empty());
}

TEST(ResamplePlan, works_on_other_memory_with_the_offsets_it_was_made_of) {
  const std::vector<float> values{0, 1, 2, 10, 20};
  const std::vector<float> others{5, 6, 7, 30, 50};
  const std::vector<double> x{0, 1, 2, 0, 1};
  const std::vector<double> q{0.5, 1.5, 0.5};
  std::vector<float> first(3);
  std::vector<float> out(3);
  const std::vector<std::int64_t> source{0, 3, 5};
  const std::vector<std::int64_t> target{0, 2, 3};
  Plan plan = plan_resample(view(values.data(), {5, 1}), view(x.data(), {5}), view(q.data(), {3}),
                            view(first.data(), {3, 1}), {.source_offsets = source, .target_offsets = target});
  plan.rebind({others.data(), x.data(), q.data(), out.data()});
  plan.run();
  EXPECT_EQ(out, (std::vector<float>{5.5F, 6.5F, 40}));
  EXPECT_EQ(first, std::vector<float>(3)) << "the first memory was not touched";
  expect_error(
      ErrorCode::null_pointer, [&] { plan.rebind({others.data(), nullptr, q.data(), out.data()}); },
      "resample: source_times");
  expect_error(
      ErrorCode::bad_parameter, [&] { plan.rebind({others.data()}); }, "values, source_times, target_times, output");
  plan.run();
  EXPECT_EQ(resample_workspace(view(values.data(), {5, 1}), view(x.data(), {5}), view(q.data(), {3}),
                               view(out.data(), {3, 1}), {.source_offsets = source, .target_offsets = target}),
            0)
      << "no device memory on the CPU";
}

TEST(ResamplePlan, of_a_grid_and_of_a_backward_pass_work_on_other_memory) {
  const std::vector<float> values{0, 1, 2};
  const std::vector<float> others{4, 6, 8};
  const std::vector<double> x{0, 1, 2};
  std::vector<float> first(2);
  std::vector<float> out(2);
  const UniformGrid grid{.start = 0.5, .period = 1.0, .count = 2};
  Plan plan = plan_resample(view(values.data(), {1, 3, 1}), view(x.data(), {3}), grid, view(first.data(), {1, 2, 1}));
  plan.rebind({others.data(), x.data(), out.data()});
  plan.run();
  EXPECT_EQ(out, (std::vector<float>{5, 7}));

  const std::vector<float> gradient{1, 2};
  std::vector<float> to(3);
  std::vector<float> other(3);
  Plan back =
      plan_resample_backward(view(x.data(), {3}), grid, view(gradient.data(), {1, 2, 1}), view(to.data(), {1, 3, 1}));
  back.rebind({x.data(), gradient.data(), other.data()});
  back.run();
  EXPECT_EQ(other, (std::vector<float>{0.5F, 1.5F, 1}));
  EXPECT_EQ(to, std::vector<float>(3));
}

TEST(ResampleSelect, takes_the_first_variant_that_can) {
  const std::vector<float> values(12);
  const std::vector<double> x{0, 1, 2};
  std::vector<float> out(12);
  const auto chosen = [&](ConstTensorView v, ConstTensorView times) {
    return std::string(plan_resample(v, times, view(x.data(), {3}), view(out.data(), {1, 3, 2})).variant());
  };
  const std::string best = cpu_variants("resample").front();
  EXPECT_EQ(chosen(view(values.data(), {1, 3, 2}), view(x.data(), {3})), best);
  EXPECT_EQ(chosen({values.data(), Layout::strided({1, 3, 2}, {0, 4, 2})}, view(x.data(), {3})), "portable");
}

}  // namespace
}  // namespace tmaops::test
