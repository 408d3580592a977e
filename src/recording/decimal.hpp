// Exact conversion between numbers and text, whatever the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::recording {

enum class TimeUnit : std::uint8_t { seconds, milliseconds, microseconds, nanoseconds };

inline constexpr std::int64_t kSecond = 1'000'000'000;  // nanoseconds

/// Whole seconds, rounded down, and the nanoseconds from there on.
struct SecondsAndRest {
  std::int64_t seconds, nanoseconds;
};
constexpr SecondsAndRest split_seconds(std::int64_t nanoseconds) {
  const std::int64_t seconds = nanoseconds / kSecond - (nanoseconds % kSecond < 0 ? 1 : 0);
  return {seconds, nanoseconds % kSecond + (nanoseconds % kSecond < 0 ? kSecond : 0)};
}

/// 0 to 9, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Decimal digits between the unit and the nanosecond: 9, 6, 3, 0.
constexpr int digits_to_nanoseconds(TimeUnit unit) { return 9 - 3 * static_cast<int>(unit); }
/// 10^9, 10^6, 10^3, 1.
constexpr std::int64_t nanoseconds_of(TimeUnit unit) {
  constexpr std::int64_t scales[] = {kSecond, 1'000'000, 1'000, 1};
  return scales[static_cast<int>(unit)];
}
/// "s", "ms", "us" or "ns".
std::string_view to_string(TimeUnit unit);
std::optional<TimeUnit> parse_time_unit(std::string_view text);

enum class ParseResult : std::uint8_t { good, not_a_number, not_finite, out_of_range };

/// Whether a number in text has neither a point nor an exponent.
inline bool is_whole(std::string_view text) { return text.find_first_of(".eE") == std::string_view::npos; }
/// Decimal text to nanoseconds, exact to the nanosecond whatever the magnitude: "1311868163.8697" seconds is
/// 1311868163869700000, which no f64 holds. Digits beyond the nanosecond are rounded to nearest, halves away from
/// zero. Takes a sign, a fraction and an exponent. not_finite for nan and inf.
ParseResult parse_time(std::string_view text, TimeUnit unit, std::int64_t& nanoseconds);
/// The same from an f32 or f64 of a file, exact to the nanosecond.
ParseResult time_from_f64(double value, TimeUnit unit, std::int64_t& nanoseconds);
/// The nearest f64 of a time in its unit.
double time_to_f64(std::int64_t nanoseconds, TimeUnit unit);

/// Digits after the point that it takes to write all these times exactly in this unit.
int digits_needed(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit);
/// "1311868163.8697": the exact time with that many digits after the point.
std::string time_text(std::int64_t nanoseconds, TimeUnit unit, int digits);

/// "0.5 s", with all decimals that are not 0.
std::string seconds_text(std::int64_t nanoseconds);

/// Reads the whole text as a real number, whatever the locale; '+', nan and inf are allowed. A number too small for f64
/// is 0, one that is too large is out_of_range.
ParseResult parse_real(std::string_view text, double& value);
/// The shortest text that reads back as the same number: "0.1", "1e+300", "nan".
std::string real_text(double value);

}  // namespace tmaops::recording
