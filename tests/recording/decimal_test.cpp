#include "recording/decimal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace tmaops::recording {
namespace {

std::int64_t parsed(std::string_view text, TimeUnit unit = TimeUnit::seconds) {
  std::int64_t time = -1;
  EXPECT_EQ(parse_time(text, unit, time), ParseResult::good) << text;
  return time;
}

ParseResult refused(std::string_view text, TimeUnit unit = TimeUnit::seconds) {
  std::int64_t time = 0;
  return parse_time(text, unit, time);
}

TEST(ParseTime, decimal_seconds_are_exact_where_a_double_is_not) {
  EXPECT_EQ(parsed("1311868163.8697"), 1311868163869700000);
  EXPECT_EQ(parsed("1311868163.869700001"), 1311868163869700001);
  EXPECT_NE(static_cast<std::int64_t>(std::strtod("1311868163.869700001", nullptr) * 1e9), 1311868163869700001);
  EXPECT_EQ(parsed("1.311868163869700001e+09"), 1311868163869700001);
  EXPECT_EQ(parsed("-0.5"), -500000000);
  EXPECT_EQ(parsed("+.5"), 500000000);
  EXPECT_EQ(parsed("7."), 7000000000);
  EXPECT_EQ(parsed("000000000000000000000000001"), 1000000000);
  EXPECT_EQ(parsed("0e99999"), 0);
  EXPECT_EQ(parsed("1e-30"), 0);
}

TEST(ParseTime, rounds_beyond_the_nanosecond_to_nearest) {
  EXPECT_EQ(parsed("0.0000000014"), 1);
  EXPECT_EQ(parsed("0.0000000015"), 2);
  EXPECT_EQ(parsed("-0.0000000015"), -2);
  EXPECT_EQ(parsed("0.0000000006"), 1);
  EXPECT_EQ(parsed("0.00000000006"), 0);
  EXPECT_EQ(parsed("1311868163.8696999999999999"), 1311868163869700000);
}

TEST(ParseTime, knows_the_units_and_the_range) {
  EXPECT_EQ(parsed("1311868163869700000", TimeUnit::nanoseconds), 1311868163869700000);
  EXPECT_EQ(parsed("1311868163869.7", TimeUnit::milliseconds), 1311868163869700000);
  EXPECT_EQ(parsed("1311868163869700", TimeUnit::microseconds), 1311868163869700000);
  EXPECT_EQ(parsed("9223372036.854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(refused("9223372036.854775808"), ParseResult::out_of_range);
  EXPECT_EQ(refused("1311868163869700000"), ParseResult::out_of_range);  // nanoseconds taken for seconds
  EXPECT_EQ(refused("1e400"), ParseResult::out_of_range);
  EXPECT_EQ(refused("1e999999999999"), ParseResult::out_of_range);
}

TEST(ParseTime, refuses_what_is_no_time) {
  for (const char* text : {"", "-", ".", "1.2.3", "1,5", "0x10", "1e", "1e+", "12a", " 1", "1 ", "--1", "1e5.0"})
    EXPECT_EQ(refused(text), ParseResult::not_a_number) << text;
  for (const char* text : {"nan", "NaN", "inf", "-inf", "Infinity"})
    EXPECT_EQ(refused(text), ParseResult::not_finite) << text;
}

TEST(TimeText, reads_back_as_the_same_time) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto time = static_cast<std::int64_t>(random()) >> (random() % 64);
    for (const TimeUnit unit : {TimeUnit::seconds, TimeUnit::milliseconds, TimeUnit::nanoseconds}) {
      if (time == std::numeric_limits<std::int64_t>::min()) continue;
      const int digits = digits_needed({time}, unit);
      const std::string text = time_text(time, unit, digits);
      ASSERT_EQ(parsed(text, unit), time) << text;
      if (digits > 0) {
        ASSERT_NE(text.back(), '0') << text << " has a digit too many";
      }
    }
  }
  EXPECT_EQ(time_text(-1, TimeUnit::seconds, 9), "-0.000000001");
  EXPECT_EQ(time_text(1311868163869700000, TimeUnit::seconds, 4), "1311868163.8697");
}

TEST(TimeFromReal, is_the_nearest_nanosecond_of_the_given_double) {
  std::int64_t time = 0;
  ASSERT_EQ(time_from_f64(-0.25, TimeUnit::seconds, time), ParseResult::good);
  EXPECT_EQ(time, -250000000);
  ASSERT_EQ(time_from_f64(4503599.000000001, TimeUnit::seconds, time), ParseResult::good);
  EXPECT_EQ(time, 4503599000000001);
  EXPECT_EQ(time_from_f64(9.3e9, TimeUnit::seconds, time), ParseResult::out_of_range);
  EXPECT_EQ(time_from_f64(std::nan(""), TimeUnit::seconds, time), ParseResult::not_finite);
}

TEST(TimeFromReal, is_that_of_the_shortest_decimal_where_doubles_are_coarser_than_nanoseconds) {
  std::int64_t time = 0, of_text = 0;
  ASSERT_EQ(time_from_f64(1311868163.8697, TimeUnit::seconds, time), ParseResult::good);
  EXPECT_EQ(time, 1311868163869700000);  // The double is 1311868163.869699954986572265625.
  EXPECT_EQ(time_to_f64(1311868163869699955, TimeUnit::seconds), 1311868163.8697);
  std::mt19937_64 random(9);
  for (const TimeUnit unit : {TimeUnit::seconds, TimeUnit::milliseconds}) {
    for (int trial = 0; trial < 20000; ++trial) {
      const double sign = trial % 2 ? 1 : -1, seconds = std::uniform_real_distribution(1e8, 4e9)(random);
      const double value = sign * seconds * (unit == TimeUnit::seconds ? 1 : 1000);
      ASSERT_EQ(time_from_f64(value, unit, time), parse_time(real_text(value), unit, of_text));
      ASSERT_EQ(time, of_text) << real_text(value);
    }
  }
}

TEST(RealText, is_the_shortest_that_reads_back) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    double back = 0;
    ASSERT_EQ(parse_real(real_text(value), back), ParseResult::good) << real_text(value);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value));
  }
  EXPECT_EQ(real_text(0.1), "0.1");
  EXPECT_EQ(real_text(std::copysign(std::nan(""), -1.0)), "nan") << "the sign of a NaN is the processor's own";
  EXPECT_EQ(real_text(std::nan("")), "nan");
}

TEST(ParseReal, takes_plus_and_nothing_after_the_number) {
  double value = 0;
  EXPECT_EQ(parse_real("+1.5", value), ParseResult::good);
  EXPECT_EQ(value, 1.5);
  for (const char* text : {"", "+", "+-1", "1,5", "1.5f", "0x1p3", "1 2"})
    EXPECT_EQ(parse_real(text, value), ParseResult::not_a_number) << text;
  EXPECT_EQ(parse_real("1e999", value), ParseResult::out_of_range);
}

}  // namespace
}  // namespace tmaops::recording
