#include "recording/iso_time.hpp"

#include <chrono>
#include <cstdio>

#include "recording/decimal.hpp"

namespace tmaops::recording {
namespace {

constexpr std::int64_t kDay = 86'400;                                                   // seconds
constexpr std::int64_t kFirstYear = -62'135'596'800, kAfterLastYear = 253'402'300'800;  // years 1 and 10000

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Exactly so many digits.
  bool number(std::size_t digits, int& value) {
    if (rest_.size() < digits) return false;
    value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!is_digit(rest_[i])) return false;
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return true;
  }
  /// 2024-05-01
  bool date(int& year, int& month, int& day) {
    return number(4, year) && accept('-') && number(2, month) && accept('-') && number(2, day);
  }
  /// Digits after a point, rounded to nanoseconds.
  bool fraction(std::int64_t& nanoseconds) {
    std::size_t count = 0;
    nanoseconds = 0;
    bool up = false;
    for (; count < rest_.size() && is_digit(rest_[count]); ++count) {
      if (count < 9) nanoseconds = nanoseconds * 10 + (rest_[count] - '0');
      if (count == 9) up = rest_[count] >= '5';
    }
    for (std::size_t i = count; i < 9; ++i) nanoseconds *= 10;
    nanoseconds += up;
    rest_.remove_prefix(count);
    return count != 0;
  }

 private:
  std::string_view rest_;
};

// "+02:00", "+0200" or "+02" in seconds.
bool parse_offset(Reader& reader, bool negative, std::int64_t& seconds) {
  int hours = 0, minutes = 0;
  if (!reader.number(2, hours) || hours > 23) return false;
  const bool colon = reader.accept(':');
  if ((colon || !reader.empty()) && (!reader.number(2, minutes) || minutes > 59)) return false;
  seconds = (negative ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

std::int64_t zone_seconds(const std::string& zone) {
  if (zone.size() < 3 || zone == "Z") return 0;
  Reader reader(std::string_view(zone).substr(1));
  std::int64_t seconds = 0;
  return parse_offset(reader, zone[0] == '-', seconds) ? seconds : 0;
}

std::string civil_text(const SecondsAndRest& at, const IsoStyle& style, int digits) {
  const std::chrono::sys_seconds time{std::chrono::seconds(at.seconds + zone_seconds(style.zone))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto rest = static_cast<int>((time - day).count());
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u%c%02d:%02d:%02d.%09lld", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), style.separator, rest / 3600,
                rest / 60 % 60, rest % 60, static_cast<long long>(at.nanoseconds));
  constexpr std::size_t kWithoutFraction = 19;
  return std::string(text).substr(0, kWithoutFraction + (digits == 0 ? 0 : 1 + static_cast<std::size_t>(digits))) +
         style.zone;
}

}  // namespace

bool looks_like_date(std::string_view text) {
  int year = 0, month = 0, day = 0;
  return Reader(text).date(year, month, day);
}

ParseResult parse_iso_time(std::string_view text, std::int64_t& nanoseconds, IsoStyle& style) {
  Reader reader(text);
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!reader.date(year, month, day)) return ParseResult::not_a_number;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return ParseResult::not_a_number;
  style.separator = reader.accept(' ') ? ' ' : 'T';
  if (style.separator == 'T' && !reader.accept('T') && !reader.accept('t')) return ParseResult::not_a_number;
  std::int64_t fraction = 0;
  if (!reader.number(2, hour) || !reader.accept(':') || !reader.number(2, minute) || hour > 23 || minute > 59)
    return ParseResult::not_a_number;
  if (reader.accept(':')) {
    if (!reader.number(2, second) || second > 59) return ParseResult::not_a_number;
    if ((reader.accept('.') || reader.accept(',')) && !reader.fraction(fraction)) return ParseResult::not_a_number;
  }
  while (reader.accept(' ')) {
  }
  const std::string_view zone = reader.rest();
  std::int64_t offset = 0;
  if (zone.empty()) {
    style.zone.clear();
  } else if (zone == "Z" || zone == "z" || zone == "UTC") {
    style.zone = "Z";
  } else {
    const bool negative = reader.accept('-');
    if ((!negative && !reader.accept('+')) || !parse_offset(reader, negative, offset) || !reader.empty())
      return ParseResult::not_a_number;
    style.zone = zone;
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = days * kDay + hour * 3600 + minute * 60 + second - offset;
  const __int128 exact = static_cast<__int128>(seconds) * kSecond + fraction;
  nanoseconds = static_cast<std::int64_t>(exact);
  return nanoseconds == exact ? ParseResult::good : ParseResult::out_of_range;
}

std::string iso_time_text(std::int64_t nanoseconds, const IsoStyle& style, int digits) {
  return civil_text(split_seconds(nanoseconds), style, digits);
}

TimeUnit unit_of_datetime(const ElementType& type) {
  return parse_time_unit(std::string_view(type.descr).substr(4, type.descr.size() - 5)).value_or(TimeUnit::nanoseconds);
}

std::string datetime_text(const Array& array, std::int64_t index) {
  const std::int64_t count = element_i64(array, index).value_or(kNotATime);
  if (count == kNotATime) return {};
  const TimeUnit unit = unit_of_datetime(array.type);
  const int decimals = 9 - digits_to_nanoseconds(unit);
  const std::int64_t per_second = kSecond / nanoseconds_of(unit);
  const std::int64_t rest = (count % per_second + per_second) % per_second,
                     seconds = count / per_second - (count % per_second < 0 ? 1 : 0);
  if (seconds < kFirstYear || seconds >= kAfterLastYear) return std::to_string(count);  // no year of four digits
  return civil_text({seconds, rest * nanoseconds_of(unit)}, {}, decimals);
}

}  // namespace tmaops::recording
