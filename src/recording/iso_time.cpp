#include "recording/iso_time.hpp"

#include <chrono>
#include <cstdio>

#include "recording/decimal.hpp"

namespace tmaops::recording {
namespace {

constexpr std::int64_t kDay = 86'400;  // seconds

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
  /// So many digits, from `least` to `most`.
  bool number(std::size_t least, std::size_t most, int& value) {
    std::size_t count = 0;
    for (value = 0; count < most && count < rest_.size() && is_digit(rest_[count]); ++count)
      value = value * 10 + (rest_[count] - '0');
    rest_.remove_prefix(count);
    return count >= least;
  }
  /// 2024-05-01 and 2024/5/1; 5/1/2024 and 1.5.2024 in the order of `style`, which is month and day where it has none.
  bool date(IsoStyle& style, std::chrono::year_month_day& date) {
    const bool year_first = rest_.find_first_not_of("0123456789") == 4;
    int first = 0, second = 0, third = 0;
    if (!number(1, year_first ? 4 : 2, first) || rest_.empty()) return false;
    style.mark = rest_[0];
    if (std::string_view("-/.").find(style.mark) == std::string_view::npos || !accept(style.mark) ||
        !number(1, 2, second) || !accept(style.mark) || !number(year_first ? 1 : 4, year_first ? 2 : 4, third))
      return false;
    if (year_first || style.order == 'Y' || style.order == 0) style.order = year_first ? 'Y' : first > 12 ? 'D' : 'M';
    if (year_first) std::swap(first, third);           // day, month, year
    if (style.order == 'M') std::swap(first, second);  // from month, day, year
    date = std::chrono::year(third) / second / first;
    return true;
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
  if (!reader.number(2, 2, hours) || hours > 23) return false;
  const bool colon = reader.accept(':');
  if ((colon || !reader.empty()) && (!reader.number(2, 2, minutes) || minutes > 59)) return false;
  seconds = (negative ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

std::int64_t zone_seconds(const std::string& zone) {
  if (zone.size() < 3 || zone == "Z") return 0;
  Reader reader(std::string_view(zone).substr(1));
  std::int64_t seconds = 0;
  return parse_offset(reader, zone[0] == '-', seconds) ? seconds : 0;
}

}  // namespace

ParseResult parse_iso_time(std::string_view text, std::int64_t& nanoseconds, IsoStyle& style) {
  int hour = 0, minute = 0, second = 0;
  std::chrono::year_month_day date = std::chrono::year(1970) / 1 / 1;
  Reader reader(text);
  if (text.substr(0, 3).find(':') != std::string_view::npos) {  // a time of day
    style.order = 0;
  } else {
    if (!reader.date(style, date) || !date.ok()) return ParseResult::not_a_number;
    style.separator = reader.accept(' ') ? ' ' : 'T';
    if (style.separator == 'T' && !reader.accept('T') && !reader.accept('t')) return ParseResult::not_a_number;
  }
  std::int64_t fraction = 0;
  if (!reader.number(1, 2, hour) || !reader.accept(':') || !reader.number(2, 2, minute) || hour > 23 || minute > 59)
    return ParseResult::not_a_number;
  if (reader.accept(':')) {
    if (!reader.number(2, 2, second) || second > 59) return ParseResult::not_a_number;
    if ((reader.accept('.') || reader.accept(',') || reader.accept(':')) && !reader.fraction(fraction))
      return ParseResult::not_a_number;
  }
  while (reader.accept(' ')) {
  }
  const bool noon = reader.accept('P') || reader.accept('p');  // of twelve hours: 1:30 PM
  if (noon || reader.accept('A') || reader.accept('a')) {
    if ((!reader.accept('M') && !reader.accept('m')) || hour < 1 || hour > 12) return ParseResult::not_a_number;
    hour = hour % 12 + (noon ? 12 : 0);
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

std::string iso_time_text(const SecondsAndRest& at, const IsoStyle& style, int digits) {
  const std::chrono::sys_seconds time{std::chrono::seconds(at.seconds + zone_seconds(style.zone))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto rest = static_cast<int>((time - day).count());
  const int year = static_cast<int>(date.year());
  const auto month = static_cast<unsigned>(date.month()), of_month = static_cast<unsigned>(date.day());
  char clock[32], text[32] = "";
  const int length = std::snprintf(clock, sizeof clock, "%02d:%02d:%02d.%09lld", rest / 3600, rest / 60 % 60, rest % 60,
                                   static_cast<long long>(at.nanoseconds));
  if (style.order == 'Y')
    std::snprintf(text, sizeof text, "%04d%c%02u%c%02u%c", year, style.mark, month, style.mark, of_month,
                  style.separator);
  else if (style.order != 0)
    std::snprintf(text, sizeof text, "%02u%c%02u%c%04d%c", style.order == 'M' ? month : of_month, style.mark,
                  style.order == 'M' ? of_month : month, style.mark, year, style.separator);
  return text + std::string(clock, static_cast<std::size_t>(length - (digits == 0 ? 10 : 9 - digits))) + style.zone;
}

std::string iso_time_text(std::int64_t nanoseconds, const IsoStyle& style, int digits) {
  return iso_time_text(split_seconds(nanoseconds), style, digits);
}

TimeUnit unit_of_datetime(const ElementType& type) {
  return parse_time_unit(std::string_view(type.descr).substr(4, type.descr.size() - 5)).value_or(TimeUnit::nanoseconds);
}

}  // namespace tmaops::recording
