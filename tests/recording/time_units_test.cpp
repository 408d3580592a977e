// The unit of times that nothing states.
#include <gtest/gtest.h>

#include "recording/times.hpp"

namespace tmaops::test {
namespace {

using recording::FoundUnit;
using recording::UnitSource;

FoundUnit found(double first, double step, bool whole = true) {
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) times.push_back(first + step * i);
  return recording::find_unit(times, whole);
}
std::string unit(double first, double step, bool whole = true) {
  return std::string(to_string(found(first, step, whole).unit));
}

TEST(TimeUnits, whole_numbers_have_the_unit_in_which_they_step_like_a_recorder) {
  struct Case {
    double step;
    const char* unit;
  };
  for (const auto& [step, wanted] : {Case{1, "s"},
                                     {9, "s"},
                                     {10, "ms"},
                                     {33, "ms"},
                                     {100, "ms"},
                                     {499, "ms"},
                                     {500, "us"},
                                     {1'000, "us"},
                                     {33'333, "us"},
                                     {499'999, "us"},
                                     {500'000, "ns"},
                                     {999'987, "ns"},
                                     {33'333'333, "ns"},
                                     {1e10, "ns"}})
    EXPECT_EQ(unit(0, step), wanted) << step;
  EXPECT_EQ(unit(0, 33.25, false), "s");
  EXPECT_EQ(found(0, 33).source, UnitSource::step);
  EXPECT_EQ(found(0, 1).source, UnitSource::usual);
}

TEST(TimeUnits, dates_say_their_unit_unless_they_step_like_a_clock_since_the_start) {
  EXPECT_EQ(unit(1.7e9, 1), "s");
  EXPECT_EQ(unit(1.7e9, 30), "s") << "not 30 ms after twenty days";
  EXPECT_EQ(unit(1.7e9, 0.01, false), "s");
  EXPECT_EQ(unit(1.7e12, 33), "ms");
  EXPECT_EQ(unit(1.7e15, 33'333), "us");
  EXPECT_EQ(unit(1.7e18, 33'333'333), "ns");
  EXPECT_EQ(found(1.7e12, 33).source, UnitSource::dates);
  EXPECT_EQ(unit(1.7e9, 4'000), "us") << "28 minutes after the start, at 250 Hz";
  EXPECT_EQ(unit(1.7e9, 33'333'333), "ns") << "two seconds after the start, at 30 Hz";
}

TEST(TimeUnits, a_step_that_may_be_of_two_units_is_doubtful) {
  for (const double step : {1.0, 9.0, 20'833.0, 22'676.0, 62'500.0, 125'000.0}) EXPECT_NE(found(0, step).doubt, "");
  for (const double step : {10.0, 33.0, 1'000.0, 33'333.0, 1e6, 33'333'333.0}) EXPECT_EQ(found(0, step).doubt, "");
  EXPECT_EQ(found(0, 1, false).doubt, "");
}

TEST(TimeUnits, what_64_bits_cannot_hold_has_a_smaller_unit) {
  EXPECT_EQ(found(1e17, 1).source, UnitSource::only_fit);
  EXPECT_EQ(unit(1e17, 1), "ns");
  EXPECT_EQ(unit(5e15, 0.5, false), "us");
  EXPECT_EQ(recording::find_unit(std::vector<double>{5e9}, true).unit, recording::TimeUnit::nanoseconds);
  EXPECT_EQ(recording::find_unit({}, true).unit, recording::TimeUnit::seconds);
}

}  // namespace
}  // namespace tmaops::test
