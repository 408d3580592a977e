// ISO 8601 times: 2024-05-01T12:00:00.123456789+02:00.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "recording/array.hpp"
#include "recording/decimal.hpp"

namespace tmaops::recording {

/// The form in which an ISO 8601 time was written.
struct IsoStyle {
  char separator = 'T';    // between date and time of day: 'T' or ' '
  std::string zone = "Z";  // "Z", an offset "+02:00", or empty where none was written, which means UTC
};

/// Converts a date and time of day (with at least hours and minutes) exactly to nanoseconds since 1970 UTC. Digits
/// beyond the nanosecond are rounded. The calendar is Gregorian. A leap second (:60) is not_a_number. The result is
/// out_of_range before 1677 and after 2262.
ParseResult parse_iso_time(std::string_view text, std::int64_t& nanoseconds, IsoStyle& style);
/// Whether the text starts like a date: 2024-05-01.
bool looks_like_date(std::string_view text);

/// The time in this style with that many digits after the seconds.
std::string iso_time_text(std::int64_t nanoseconds, const IsoStyle& style, int digits);

/// Element of a datetime64 array as ISO 8601 in UTC, with the digits of its unit; empty for NaT.
std::string datetime_text(const Array& array, std::int64_t index);
/// The unit of "<M8[us]".
TimeUnit unit_of_datetime(const ElementType& type);

}  // namespace tmaops::recording
