// Counting what is wrong with times: the definition on the CPU, and the checks of its arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

using Counts = std::vector<std::int64_t>;

Counts counted(const std::vector<double>& x, const std::vector<double>& q, const ResampleOptions& options = {}) {
  Counts counts(static_cast<std::size_t>(kResampleViolations), -1);
  resample_violations(view(x.data(), {static_cast<std::int64_t>(x.size())}),
                      view(q.data(), {static_cast<std::int64_t>(q.size())}), view(counts.data(), {kResampleViolations}),
                      options);
  return counts;
}

TEST(ResampleViolations, counts_each_kind) {
  EXPECT_EQ(counted({0, 1, 2}, {0.5, 5}), (Counts{0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counted({0, NAN, 2, INFINITY}, {0.5}), (Counts{2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counted({0, 3, 2, 2}, {0.5, NAN}), (Counts{0, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(counted({0, 3, 2, 2}, {0.5}, {.duplicates = Duplicates::last}), (Counts{0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counted({0, 1}, {-1, 0, 1, 2}, {.outside = Outside::error}), (Counts{0, 0, 0, 0, 2, 0, 0}));
}

TEST(ResampleViolations, trajectories_without_targets_are_not_looked_at) {
  EXPECT_EQ(counted({1, 0, NAN}, {}), (Counts{0, 0, 0, 0, 0, 0, 0}));
  const std::vector<std::int64_t> source_offsets{0, 0, 2, 4};
  const std::vector<std::int64_t> target_offsets{0, 1, 1, 2};
  ResampleOptions options;
  options.source_offsets = source_offsets;
  options.target_offsets = target_offsets;
  EXPECT_EQ(counted({1, 0, 0, 1}, {0, 0}, options), (Counts{0, 0, 0, 0, 0, 1, 0}));
  options.outside = Outside::nan;
  EXPECT_EQ(counted({1, 0, 0, 1}, {0, 0}, options), (Counts{0, 0, 0, 0, 0, 0, 0}));
}

TEST(ResampleViolations, shared_timestamps_count_once_for_each_trajectory) {
  const std::vector<double> x{0, NAN};
  const std::vector<double> q{0.5, 0.75, 0.25};
  const auto counted_for = [&](const ConstTensorView& targets) {
    Counts counts(static_cast<std::size_t>(kResampleViolations), -1);
    resample_violations(view(x.data(), {2}), targets, view(counts.data(), {kResampleViolations}));
    return counts[0];
  };
  EXPECT_EQ(counted_for(view(q.data(), {3, 1})), 3);
  EXPECT_EQ(counted_for(view(q.data(), {3})), 1);  // with shared targets too there is one trajectory to look at
}

TEST(ResampleViolations, a_grid_has_no_violations_of_its_own) {
  const std::vector<double> x{0, 1, 2};
  Counts counts(static_cast<std::size_t>(kResampleViolations), -1);
  ResampleOptions options;
  options.outside = Outside::error;
  resample_violations(view(x.data(), {3}), UniformGrid{0.5, 1.0, 3}, view(counts.data(), {kResampleViolations}),
                      options);
  EXPECT_EQ(counts, (Counts{0, 0, 0, 0, 1, 0, 0}));
}

TEST(ResampleViolations, leaves_the_last_counter_out_where_there_is_none) {
  const std::vector<double> x{0, 2, 1};
  Counts counts(7, -1);
  resample_violations(view(x.data(), {3}), view(x.data(), {3}), view(counts.data(), {6}));
  EXPECT_EQ(counts, (Counts{0, 1, 0, 0, 0, 0, -1}));
}

TEST(ResampleViolations, refuses_counts_of_another_shape_or_type) {
  const std::vector<double> x{0, 1, 2};
  Counts counts(5);
  expect_error(
      ErrorCode::shape_mismatch,
      [&] { resample_violations(view(x.data(), {3}), view(x.data(), {3}), view(counts.data(), {5})); }, "counts");
  expect_error(
      ErrorCode::shape_mismatch,
      [&] { resample_violations(view(x.data(), {3}), view(x.data(), {3}), view(counts.data(), {1, 5})); }, "counts");
  std::vector<float> wrong(7);
  expect_error(
      ErrorCode::unsupported_dtype,
      [&] { resample_violations(view(x.data(), {3}), view(x.data(), {3}), view(wrong.data(), {7})); }, "counts");
}

}  // namespace
}  // namespace tmaops::test
