#include "bench/counters.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "bench/shared_library.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

using Values = std::array<double, kCounters.size()>;

Values kernel(double nanoseconds, double percent, double count) {
  Values values{};
  for (std::size_t i = 0; i < kCounters.size(); ++i) values[i] = kCounters[i].fold == Fold::sum ? count : percent;
  values[0] = nanoseconds;
  return values;
}

TEST(Counters, KernelsAddUpAndTheirShareOfThePeakIsWeightedByTime) {
  const Counters counters = fold_kernels({kernel(1000, 80, 5), kernel(3000, 40, 7)});
  EXPECT_EQ(counters.kernels, 2);
  EXPECT_DOUBLE_EQ(counters.values[counter_index("gpu__time_duration.sum")], 4000);
  EXPECT_DOUBLE_EQ(counters.values[counter_index("dram__throughput.avg.pct_of_peak_sustained_elapsed")], 50);
  EXPECT_DOUBLE_EQ(counters.values[counter_index("dram__bytes_read.sum")], 12);
}

TEST(Counters, NoKernelsCountNothing) {
  const Counters counters = fold_kernels({});
  EXPECT_EQ(counters.kernels, 0);
  for (const double value : counters.values) EXPECT_EQ(value, 0);
}

TEST(Counters, TheDurationWeighs) {
  EXPECT_EQ(counter_index("gpu__time_duration.sum"), 0u);
  EXPECT_EQ(counter_index("no such counter"), kCounters.size());
}

TEST(Counters, TheStateSaysWhatToDoAboutAProblem) {
  const CountersState state = counters_state();
  EXPECT_EQ(state.problem.empty(), state.mend.empty()) << state.problem;
  EXPECT_FALSE(state.found.empty() && state.problem.empty());
}

TEST(SharedLibrary, ALibraryThatIsNotThereIsNamed) {
  const SharedLibrary none({"libno-such-library.so.7", "libneither.so"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.problem().find("libno-such-library.so.7"), std::string::npos) << none.problem();
  EXPECT_EQ(none.function<int()>("anything"), nullptr);
}

TEST(SharedLibrary, TakesTheFirstThereIs) {
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
