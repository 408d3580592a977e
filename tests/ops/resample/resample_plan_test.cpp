// Plans of resampling, and which variant a call gets.
#include <gtest/gtest.h>

#include <optional>

#include "ops/resample/resample_cases.hpp"
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
