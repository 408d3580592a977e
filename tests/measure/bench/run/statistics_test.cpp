#include "bench/run/statistics.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

TEST(Statistics, percentiles_interpolate_between_ordered_samples) {
  const std::vector<double> samples{4, 1, 3, 2};  // numpy.percentile gives the same
  EXPECT_DOUBLE_EQ(percentile(samples, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.1), 1.3);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(percentile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(samples, 1), 4);
}

TEST(Statistics, one_outlier_does_not_move_the_median) {
  const std::vector<double> samples{10, 10, 10, 10, 10, 10, 10, 10, 10, 1e6};
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.median, 10);
  EXPECT_EQ(summary.n, 10);
  EXPECT_EQ(summary.p10, 10);
  EXPECT_GT(summary.p90, 10);
}

TEST(Statistics, mean_extremes_and_deviation_of_the_samples) {
  const Summary summary = summarize(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_EQ(summary.min, 2);
  EXPECT_EQ(summary.max, 9);
  EXPECT_NEAR(summary.deviation, 2.13809, 1e-5);  // numpy.std(..., ddof=1)
}

TEST(Statistics, one_sample_is_its_own_summary) {
  const Summary summary = summarize(std::vector<double>{7});
  EXPECT_EQ(summary.median, 7);
  EXPECT_EQ(summary.p10, 7);
  EXPECT_EQ(summary.p90, 7);
  EXPECT_EQ(summary.mean, 7);
  EXPECT_EQ(summary.deviation, 0);
}

TEST(Statistics, no_samples_and_na_n_are_errors) {
  test::expect_error(ErrorCode::bad_parameter, [] { summarize(std::vector<double>{}); }, "none");
  test::expect_error(
      ErrorCode::bad_parameter, [] { summarize(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}); },
      "finite");
}

}  // namespace
}  // namespace tmaops::bench
