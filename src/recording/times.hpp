// The times of a recording: the column or array that has them, their unit, and their order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recording/recording.hpp"
#include "recording/time_names.hpp"

namespace tmaops::recording {

inline constexpr std::int64_t kWholeDay = 86'400 * kSecond;

struct TimeOptions {
  std::optional<TimeUnit> unit{};  // otherwise: a unit in the column's name such as "[ns]", else as find_unit() says
  std::string name{};              // array or column; otherwise one of the usual names
  bool only_times = false;         // no columns are wanted: a single array is the times, whatever its name
  std::string option = "--times-array";  // what messages name as the way to say it
};

/// The times among names. `second` is that of fractions of a second, or of the dates of times of day.
struct ChosenTimes {
  std::size_t index = 0;
  std::optional<std::size_t> second{};
};
/// The column or array of a name.
using ArrayOf = std::function<Array(std::size_t)>;
/// Finds the times among names: options.name, a usual name, a pair, or nothing. Of timestamp_s and timestamp_ns, whose
/// names do not say whether they are a pair, the values do. Sets name, second_name, second_unit and choice of
/// recording.time, and recording.other_time_names.
std::optional<ChosenTimes> choose_times(Recording& recording, const std::vector<std::string>& names,
                                        const TimeOptions& options, const ArrayOf& array);
/// Where no name is known: the only array of dates, else the first column named like times whose values rise.
std::optional<ChosenTimes> choose_like_times(Recording& recording, const std::vector<std::string>& names,
                                             const TimeOptions& options, const ArrayOf& array);
/// Either of the two for arrays, among which there must be times. Throws Error array_missing.
ChosenTimes find_array_times(Recording& recording, const std::vector<std::string>& names, const TimeOptions& options,
                             const ArrayOf& array);

/// The unit of numbers that nothing states.
struct FoundUnit {
  TimeUnit unit = TimeUnit::seconds;
  UnitSource source = UnitSource::usual;
  std::string doubt{};  // what the warning says where another unit is as likely
};
/// The only place that infers units, for every source of recordings. times: the first ones in their order, and the last
/// one. Numbers that are dates from 1990 to 2100 in one unit have that unit. Else real numbers are seconds, and whole
/// ones have the unit in which they step like the samples of a recorder. Where 64 bits of nanoseconds cannot hold them,
/// the unit is smaller.
FoundUnit find_unit(std::span<const double> times, bool whole);
/// The unit that a reader infers for these times, written as numbers of `unit`, whole ones or not.
TimeUnit unit_read_back(std::span<const std::int64_t> nanoseconds, TimeUnit unit, bool whole = true);

/// The times of texts, which are dates, times of day or numbers. place: of a row, for messages. refuse: throws, with
/// what the row should have. real: whole numbers are real ones that happen to be whole.
using PlaceOf = std::function<std::string(std::int64_t)>;
using Refuse = std::function<void(std::int64_t, const std::string&)>;
std::vector<std::int64_t> text_times(const Array& texts, const PlaceOf& place, const Refuse& refuse,
                                     const TimeOptions& options, std::string_view name, TimeColumn& time,
                                     bool real = false);
/// Dates (text, or datetime64 without a time of day), and the times of day beside them, as one text.
Array joined_texts(const Array& dates, const Array& times);
/// The times of an array of one dimension, in options.unit or else in the unit of its type or name. Throws Error
/// times_not_finite, time_precision (f32 too coarse for its timestamps), time_overflow (does not fit in int64
/// nanoseconds), shape_mismatch, unsupported_file_dtype.
std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const TimeOptions& options,
                                      std::string_view name, TimeColumn& time);
/// The times of two arrays of whole seconds and their fractions.
std::vector<std::int64_t> pair_times(Recording& recording, const Array& seconds, const Array& fractions,
                                     const std::string& where);
/// Warns of a unit that may be another one, of dates without a zone, which were read as UTC, and of a unit that does
/// not apply to dates.
void warn_of_times(Recording& recording, const TimeOptions& options);
/// Adds whole seconds and a fraction. Throws Error bad_text or time_overflow at recording.place(row).
std::int64_t join_pair(const Recording& recording, std::int64_t row, std::int64_t seconds, std::int64_t fraction);
/// Whether the two columns of a pair can hold the times, as those of targets may not be.
bool fits_pair(const Recording& recording);
/// A time as it was given, with that many digits after the seconds; where it has a date in a second column, the part of
/// one of them: 0 the time of day.
std::string iso_text_of(const TimeColumn& time, std::int64_t nanoseconds, int digits, std::size_t part = 0);
/// The name that a pair of seconds and nanoseconds has as one number: header.stamp for header.stamp.secs.
std::string joined_time_name(const TimeColumn& time);
/// The times as whole numbers of the unit; nothing when one of them is not whole.
std::optional<std::vector<std::int64_t>> whole_times(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit);

/// Checks that times increase within each episode. Throws Error times_not_sorted or, unless equal timestamps are
/// allowed, duplicate_times, with the line or row.
void check_order(const Recording& recording, bool allow_duplicates);

}  // namespace tmaops::recording
