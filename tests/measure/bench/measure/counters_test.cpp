#include "bench/measure/counters.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "bench/measure/shared_library.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

constexpr const char* kDram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";

CounterValues kernel(double nanoseconds, double percent, double count) {
  CounterValues values{};
  for (std::size_t i = 0; i < kCounters.size(); ++i) values[i] = kCounters[i].fold == Fold::sum ? count : percent;
  values[0] = nanoseconds;
  return values;
}

TEST(Counters, kernels_add_up_and_their_share_of_the_peak_is_weighted_by_time) {
  const std::array kernels{kernel(1000, 80, 5), kernel(3000, 40, 7)};
  const CounterValues values = fold_kernels(kernels);
  EXPECT_DOUBLE_EQ(values[counter_index("gpu__time_duration.sum")], 4000);
  EXPECT_DOUBLE_EQ(values[counter_index(kDram)], 50);
  EXPECT_DOUBLE_EQ(values[counter_index("dram__bytes_read.sum")], 12);
}

TEST(Counters, no_kernels_count_nothing) {
  for (const double value : fold_kernels({})) EXPECT_EQ(value, 0);
}

TEST(Counters, the_median_of_the_runs_counts_and_the_first_ones_do_not) {
  std::vector<CounterValues> kernels(4, kernel(1, 99, 1000));  // two runs of two kernels
  for (const double percent : {80, 10, 40, 30, 20})
    for (int half = 0; half < 2; ++half) kernels.push_back(kernel(500, percent, percent));
  const Counters counters = fold_runs(kernels, 7, 5);
  EXPECT_EQ(counters.kernels, 2);
  EXPECT_EQ(counters.runs, 5);
  EXPECT_DOUBLE_EQ(counters.values[0], 1000);
  EXPECT_DOUBLE_EQ(counters.values[counter_index(kDram)], 30);
  EXPECT_DOUBLE_EQ(counters.p10[counter_index(kDram)], 14);
  EXPECT_DOUBLE_EQ(counters.p90[counter_index(kDram)], 64);
  EXPECT_DOUBLE_EQ(counters.values[counter_index("dram__bytes_read.sum")], 60);
}

TEST(Counters, runs_of_different_numbers_of_kernels_cannot_be_told_apart) {
  const std::vector<CounterValues> kernels(5, kernel(1, 2, 3));
  test::expect_error(ErrorCode::variant_refuses, [&] { fold_runs(kernels, 3, 2); }, "5 kernels in 3 runs");
}

TEST(Counters, a_range_of_many_calls_is_told_per_call) {
  const CounterValues range = kernel(8000, 80, 12);
  const BackToBack all = back_to_back(range, 4);
  EXPECT_EQ(all.calls, 4);
  EXPECT_DOUBLE_EQ(all.values[counter_index("gpu__time_duration.sum")], 2000);
  EXPECT_DOUBLE_EQ(all.values[counter_index(kDram)], 80);
  EXPECT_DOUBLE_EQ(all.values[counter_index("dram__bytes_read.sum")], 3);
  EXPECT_DOUBLE_EQ(all.values[counter_index("dram__bytes_write.sum")], 3);
}

TEST(Counters, the_longest_wait_is_named_in_words) {
  CounterValues values{};
  EXPECT_EQ(longest_wait(values).reason, "");
  values.fill(1);
  values[counter_index("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio")] = 2.5;
  values[counter_index("l1tex__t_sectors.sum")] = 1e6;
  EXPECT_EQ(longest_wait(values).reason, "long scoreboard");
  EXPECT_EQ(longest_wait(values).warps, 2.5);
}

TEST(Counters, the_duration_weighs) {
  EXPECT_EQ(counter_index("gpu__time_duration.sum"), 0u);
  EXPECT_EQ(counter_index("no such counter"), kCounters.size());
}

TEST(Counters, the_state_says_what_to_do_about_a_problem) {
  const CountersState state = counters_state();
  EXPECT_EQ(state.problem.empty(), state.mend.empty()) << state.problem;
  EXPECT_FALSE(state.found.empty() && state.problem.empty());
}

TEST(SharedLibrary, a_library_that_is_not_there_is_named) {
  const SharedLibrary none({"libno-such-library.so.7", "libneither.so"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.problem().find("libno-such-library.so.7"), std::string::npos) << none.problem();
  EXPECT_EQ(none.function<int()>("anything"), nullptr);
}

TEST(SharedLibrary, takes_the_first_there_is) {
  const SharedLibrary math({"libno-such-library.so.7", "libm.so.6"});
  ASSERT_TRUE(math) << math.problem();
  EXPECT_EQ(math.name(), "libm.so.6");
  const auto root = math.function<double(double)>("sqrt");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root(9), 3);
  EXPECT_EQ(math.function<double(double)>("no_such_function"), nullptr);
}

}  // namespace
}  // namespace tmaops::bench
