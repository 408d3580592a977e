#include "io/decimal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace tmaops::io {
namespace {

constexpr std::int64_t kPowers[] = {1,       10,        100,        1'000,       10'000,
                                    100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
constexpr int kMostIntegerDigits = 19;  // of an int64

// "nan", "inf", "infinity" in any case.
bool names_non_finite(std::string_view text) {
  std::string lower;
  for (const char c : text.substr(0, 9)) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

// Whether a decimal number beyond f64 is too small rather than too large, by the place of its first digit.
bool is_tiny(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_not_of("0.");
  if (first == std::string_view::npos) return true;
  std::int64_t power = 0;
  if (e < text.size()) {
    std::string_view rest = text.substr(e + 1);
    if (rest.starts_with('+')) rest.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), power);
    if (error == std::errc::result_out_of_range) return rest.starts_with('-');
  }
  return static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) < -power;
}

}  // namespace

std::string_view to_string(TimeUnit unit) {
  static constexpr std::string_view kNames[] = {"s", "ms", "us", "ns"};
  return kNames[static_cast<int>(unit)];
}

std::optional<TimeUnit> parse_time_unit(std::string_view text) {
  for (const TimeUnit unit : {TimeUnit::seconds, TimeUnit::milliseconds, TimeUnit::microseconds, TimeUnit::nanoseconds})
    if (to_string(unit) == text) return unit;
  return {};
}

ParseResult parse_time(std::string_view text, TimeUnit unit, std::int64_t& nanoseconds) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (names_non_finite(text)) return ParseResult::not_finite;
  // digits * 10^exponent nanoseconds. Digits that cannot matter are not kept but move the exponent.
  std::uint64_t digits = 0;
  std::int64_t exponent = digits_to_nanoseconds(unit);
  int kept = 0;
  char dropped = 0;  // the first digit that was not kept
  bool any = false, point = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (kept < kMostIntegerDigits) {
      digits = digits * 10 + static_cast<std::uint64_t>(text[i] - '0');
      if (digits != 0) ++kept;
      if (point) --exponent;
    } else {
      if (dropped == 0) dropped = text[i];
      if (!point) ++exponent;
    }
  }
  if (!any) return ParseResult::not_a_number;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::string_view rest = text.substr(i + 1);
    if (rest.starts_with('+')) rest.remove_prefix(1);
    int power = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), power);
    if (error == std::errc::invalid_argument || end != rest.data() + rest.size()) return ParseResult::not_a_number;
    if (error != std::errc() || power > 100'000 || power < -100'000) return ParseResult::out_of_range;
    exponent += power;
  } else if (i != text.size()) {
    return ParseResult::not_a_number;
  }
  bool half = dropped >= '5' && exponent == 0;  // the digit after the nanosecond is 5 or more
  for (; exponent < 0 && digits != 0; ++exponent) {
    half = digits % 10 >= 5;
    digits /= 10;
  }
  if (exponent < 0) half = false;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (; exponent > 0 && digits != 0; --exponent) {
    if (digits > kMost / 10) return ParseResult::out_of_range;
    digits *= 10;
  }
  digits += half;
  if (digits > kMost) return ParseResult::out_of_range;
  nanoseconds = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  return ParseResult::good;
}

ParseResult time_from_f64(double value, TimeUnit unit, std::int64_t& nanoseconds) {
  if (!std::isfinite(value)) return ParseResult::not_finite;
  const std::int64_t scale = kPowers[digits_to_nanoseconds(unit)];
  const double whole = std::trunc(value);
  // The fraction is exact and below 1. Only its product with the scale is rounded, to the nearest nanosecond.
  const auto part = static_cast<std::int64_t>(std::llround((value - whole) * static_cast<double>(scale)));
  if (std::abs(whole) >= 0x1p63) return ParseResult::out_of_range;
  std::int64_t product = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(whole), scale, &product) ||
      __builtin_add_overflow(product, part, &nanoseconds))
    return ParseResult::out_of_range;
  return ParseResult::good;
}

double time_to_f64(std::int64_t nanoseconds, TimeUnit unit) {
  // Goes through decimal text, which rounds once; whole + fraction / scale would round twice.
  const std::string text = time_text(nanoseconds, unit, digits_to_nanoseconds(unit));
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int digits_needed(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit) {
  const int most = digits_to_nanoseconds(unit);
  int needed = 0;
  for (const std::int64_t time : nanoseconds)
    while (needed < most && time % kPowers[most - needed] != 0) ++needed;
  return needed;
}

std::string time_text(std::int64_t nanoseconds, TimeUnit unit, int digits) {
  const int most = digits_to_nanoseconds(unit);
  std::uint64_t magnitude = static_cast<std::uint64_t>(nanoseconds);
  if (nanoseconds < 0) magnitude = 0 - magnitude;
  const auto scale = static_cast<std::uint64_t>(kPowers[most]);
  std::string text = (nanoseconds < 0 ? "-" : "") + std::to_string(magnitude / scale);
  if (digits == 0) return text;
  std::string fraction = std::to_string(magnitude % scale);
  fraction.insert(0, static_cast<std::size_t>(most) - fraction.size(), '0');
  return text + "." + fraction.substr(0, static_cast<std::size_t>(digits));
}

ParseResult parse_real(std::string_view text, double& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return ParseResult::not_a_number;
  if (error == std::errc()) return ParseResult::good;
  if (!is_tiny(text)) return ParseResult::out_of_range;
  value = text.starts_with('-') ? -0.0 : 0.0;  // the nearest f64
  return ParseResult::good;
}

ParseResult parse_integer(std::string_view text, std::int64_t& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return ParseResult::not_a_number;
  return error == std::errc() ? ParseResult::good : ParseResult::out_of_range;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";  // its sign depends on the processor
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

std::string real_field_text(double value) {
  std::string text = real_text(value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

}  // namespace tmaops::io
