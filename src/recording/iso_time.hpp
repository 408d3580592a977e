// ISO 8601 times, 2024-05-01T12:00:00.123456789+02:00, and what is like them: 5/1/2024 1:00 PM, and times of day.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "recording/array.hpp"
#include "recording/decimal.hpp"

namespace tmaops::recording {

/// The form in which such a time was written.
struct IsoStyle {
  char separator = 'T';    // between date and time of day: 'T' or ' '
  std::string zone = "Z";  // "Z", an offset "+02:00", or empty where none was written, which means UTC
  char order = 'Y';  // of the date: year, month, day; 'M': month, day, year; 'D': day, month, year; 0: there is no date
  char mark = '-';   // between the parts of the date
};

/// Converts a date and time of day (with at least hours and minutes) exactly to nanoseconds since 1970 UTC, and a time
/// of day alone to those since midnight. Digits beyond the nanosecond are rounded. The calendar is Gregorian. A leap
/// second (:60) is not_a_number. The result is out_of_range before 1677 and after 2262. style.order on entry says how a
/// date whose year is last is read: 'D' or 'M', else as it can be, with the month first where both can be.
ParseResult parse_iso_time(std::string_view text, std::int64_t& nanoseconds, IsoStyle& style);

/// The time in this style with that many digits after the seconds.
std::string iso_time_text(std::int64_t nanoseconds, const IsoStyle& style, int digits);
std::string iso_time_text(const SecondsAndRest& at, const IsoStyle& style, int digits);

/// The unit of "<M8[us]".
TimeUnit unit_of_datetime(const ElementType& type);

}  // namespace tmaops::recording
