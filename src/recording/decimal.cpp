#include "recording/decimal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/enum_name.hpp"
#include "core/spelling.hpp"

namespace tmaops::recording {
namespace {

constexpr std::string_view kUnitNames[] = {"s", "ms", "us", "ns"};
constexpr auto kMostDigits = static_cast<unsigned __int128>(1e36);  // an int64 has 19 of them

}  // namespace

std::string_view to_string(TimeUnit unit) { return enum_name(kUnitNames, unit); }
std::optional<TimeUnit> parse_time_unit(std::string_view text) { return parse_enum<TimeUnit>(kUnitNames, text); }

ParseResult parse_time(std::string_view text, TimeUnit unit, std::int64_t& nanoseconds) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  // digits * 10^exponent nanoseconds. Digits that cannot matter are not kept but move the exponent.
  unsigned __int128 digits = 0;
  std::int64_t exponent = digits_to_nanoseconds(unit);
  bool any = false, point = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (digits < kMostDigits) {
      digits = digits * 10 + static_cast<unsigned>(text[i] - '0');
      exponent -= point;
    } else {
      exponent += !point;
    }
  }
  double other = 0;
  const bool named = !any && parse_real(text, other) == ParseResult::good && !std::isfinite(other);  // nan or inf
  if (!any) return named ? ParseResult::not_finite : ParseResult::not_a_number;
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
  bool half = false;  // the digit after the nanosecond is 5 or more
  for (; exponent < 0 && digits != 0; ++exponent) {
    half = digits % 10 >= 5;
    digits /= 10;
  }
  if (exponent < 0) half = false;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (; exponent > 0 && digits != 0; --exponent) {
    if (digits > kMost) return ParseResult::out_of_range;
    digits *= 10;
  }
  digits += half;
  if (digits > kMost) return ParseResult::out_of_range;
  nanoseconds = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  return ParseResult::good;
}

ParseResult time_from_f64(double value, TimeUnit unit, std::int64_t& nanoseconds) {
  if (!std::isfinite(value)) return ParseResult::not_finite;
  const std::int64_t scale = nanoseconds_of(unit);
  const auto fine = static_cast<double>(scale);
  if (std::abs(value) * fine < 0x1p52) {
    const auto whole = static_cast<std::int64_t>(value);
    const double part = (value - static_cast<double>(whole)) * fine;
    const auto down = static_cast<std::int64_t>(part);
    const double rest = part - static_cast<double>(down);
    nanoseconds = whole * scale + down + (rest >= 0.5) - (rest <= -0.5);
    return ParseResult::good;
  }
  const double whole = std::trunc(value);
  // A double that resolves less than a nanosecond means its shortest decimal, as text has it: in microseconds, or
  // finer.
  double ticks = std::max(fine / 1000, 1.0);
  while (ticks < fine && whole + std::nearbyint((value - whole) * ticks) / ticks != value) ticks *= 10;
  const auto part = static_cast<std::int64_t>(std::nearbyint((value - whole) * ticks));
  if (std::abs(whole) >= 0x1p63) return ParseResult::out_of_range;
  const __int128 exact = static_cast<__int128>(whole) * scale + part * std::llround(fine / ticks);
  nanoseconds = static_cast<std::int64_t>(exact);
  return nanoseconds == exact ? ParseResult::good : ParseResult::out_of_range;
}

double time_to_f64(std::int64_t nanoseconds, TimeUnit unit) {
  // A quotient of two numbers that f64 holds exactly is rounded once, and so is one of a wider type, unless that lies
  // halfway between two f64. Then decimal text is rounded once; whole + fraction / scale would round twice.
  const auto scale = static_cast<long double>(nanoseconds_of(unit));
  const long double quotient = static_cast<long double>(nanoseconds) / scale;
  const auto nearest = static_cast<double>(quotient);
  if (std::numeric_limits<long double>::digits >= 64 && nearest != 0) {
    const long double rest = std::abs(quotient - static_cast<long double>(nearest));
    const long double half = std::ldexp(1.0L, std::ilogb(nearest) - std::numeric_limits<double>::digits);
    if (rest != half && rest != half / 2) return nearest;
  }
  const std::string text = time_text(nanoseconds, unit, digits_to_nanoseconds(unit));
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int digits_needed(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit) {
  const int most = digits_to_nanoseconds(unit);
  std::int64_t last = nanoseconds_of(unit);  // nanoseconds of the last digit
  int needed = 0;
  for (const std::int64_t time : nanoseconds)
    for (; needed < most && time % last != 0; last /= 10) ++needed;
  return needed;
}

std::string time_text(std::int64_t nanoseconds, TimeUnit unit, int digits) {
  const int most = digits_to_nanoseconds(unit);
  std::uint64_t magnitude = static_cast<std::uint64_t>(nanoseconds);
  if (nanoseconds < 0) magnitude = 0 - magnitude;
  const auto scale = static_cast<std::uint64_t>(nanoseconds_of(unit));
  std::string text = (nanoseconds < 0 ? "-" : "") + std::to_string(magnitude / scale);
  if (digits == 0) return text;
  std::string fraction = std::to_string(magnitude % scale);
  fraction.insert(0, static_cast<std::size_t>(most) - fraction.size(), '0');
  return text + "." + fraction.substr(0, static_cast<std::size_t>(digits));
}

std::string seconds_text(std::int64_t nanoseconds) {
  return time_text(nanoseconds, TimeUnit::seconds, digits_needed({nanoseconds}, TimeUnit::seconds)) + " s";
}

ParseResult parse_real(std::string_view text, double& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return ParseResult::not_a_number;
  if (error == std::errc()) return ParseResult::good;
  // Beyond f64: from_chars does not tell too small from too large.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  value = strtod_l(std::string(text).c_str(), nullptr, plain);
  return std::isinf(value) ? ParseResult::out_of_range : ParseResult::good;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";  // its sign depends on the processor
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

}  // namespace tmaops::recording
