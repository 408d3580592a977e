// Times of a recording: the column or array that has them, their unit, and their name in the output.
#include "recording/times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops::recording {
namespace {

// Times of 16 or 32 bits must be different: their resolution at the largest one must be finer than the mean step.
void check_precision(const Array& array, const std::string& where) {
  const std::int64_t count = array.size();
  if (array.type.kind != ElementKind::real || array.type.bytes == 8 || count == 0) return;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = element_f64(array, i);
    if (!std::isfinite(value)) return;  // array_times() has an error for it
    first = std::min(first, value);
    last = std::max(last, value);
  }
  const double largest = std::max(std::abs(first), std::abs(last));
  const int digits = array.type.bytes == 4 ? 23 : array.type.bfloat16 ? 7 : 10;  // of the mantissa
  const double resolution = largest == 0 ? 0 : std::ldexp(1.0, std::ilogb(largest) - digits);
  if (resolution * static_cast<double>(count - 1) > last - first || (count == 1 && resolution > 1e-3))
    fail(ErrorCode::time_precision, where,
         std::to_string(count) + " timestamps of type " + (array.type.bfloat16 ? "bf16" : array.type.descr) +
             " up to " + real_text(largest) + ", where that type resolves " + real_text(resolution),
         "a type that resolves the mean step");
}

[[noreturn]] void fail_time(const std::string& where, std::int64_t row, const std::string& got, ParseResult result,
                            const TimeColumn& time) {
  const std::string place = where + ": row " + std::to_string(row);
  if (result == ParseResult::not_a_number)
    fail(ErrorCode::bad_text, place, "'" + got + "'",
         time.form == TimeForm::iso8601 ? "an ISO 8601 time as in the rows before"
                                        : "a time in " + std::string(to_string(time.unit)));
  const bool finite = result != ParseResult::not_finite;
  const std::string unit = time.form == TimeForm::iso8601 ? "" : " " + std::string(to_string(time.unit));
  fail(finite ? ErrorCode::time_overflow : ErrorCode::times_not_finite, place, got + unit,
       finite ? "a time within 292 years of 0, the range of int64 nanoseconds" : "a finite time",
       finite && time.form == TimeForm::number ? "Name the unit with --time-unit." : "");
}

constexpr std::int64_t kLooked = 1000;  // rows whose size and step tell the unit

/// The first times of an array of numbers, or of text with numbers, and the last one.
std::vector<double> some_numbers(const Array& array) {
  std::vector<double> numbers;
  const auto add = [&](std::int64_t i) {
    double value = 0;
    if (array.type.kind != ElementKind::text)
      numbers.push_back(element_f64(array, i));
    else if (parse_real(element_text(array, i), value) == ParseResult::good)
      numbers.push_back(value);
  };
  for (std::int64_t i = 0; i < std::min(kLooked, array.size()); ++i) add(i);
  if (array.size() > kLooked) add(array.size() - 1);
  return numbers;
}

void set_unit(const Array& array, const TimeOptions& options, std::string_view name, TimeColumn& time) {
  if (array.type.kind == ElementKind::time) {
    time.form = TimeForm::datetime64;
    time.unit = unit_of_datetime(array.type);
    time.unit_source = UnitSource::format;
  } else if (options.unit) {
    time.unit = *options.unit;
    time.unit_source = UnitSource::option;
  } else if (const auto named = unit_in_name(name)) {
    time.unit = *named;
    time.unit_source = UnitSource::name;
  } else {
    time.unit = time.integer ? TimeUnit::nanoseconds : TimeUnit::seconds;
    time.unit_source = UnitSource::usual;
    if (const auto unit = unit_of_dates(some_numbers(array), time.unit)) {
      time.unit = *unit;
      time.unit_source = UnitSource::dates;
    }
  }
}

/// Dates as text, and numbers as text.
std::vector<std::int64_t> text_times(const Array& array, const std::string& where, const TimeOptions& options,
                                     std::string_view name, TimeColumn& time) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(array.size()));
  const bool dates = !times.empty() && looks_like_date(element_text(array, 0));
  if (dates) {
    time.form = TimeForm::iso8601;
    time.unit_source = UnitSource::format;
  } else {
    set_unit(array, options, name, time);
  }
  for (std::int64_t row = 0; row < array.size(); ++row) {
    const std::string text = element_text(array, row);
    std::int64_t& to = times[static_cast<std::size_t>(row)];
    IsoStyle style;
    const ParseResult result = dates ? parse_iso_time(text, to, style) : parse_time(text, time.unit, to);
    if (result != ParseResult::good) fail_time(where, row, text, result, time);
    if (row == 0) time.iso = style;
    if (dates && style.zone.empty() != time.iso.zone.empty())
      fail(ErrorCode::bad_text, where + ": row " + std::to_string(row), "'" + display_text(text) + "'",
           time.iso.zone.empty() ? "a time without a zone, as before" : "a zone, as before");
  }
  return times;
}

}  // namespace

std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const TimeOptions& options,
                                      std::string_view name, TimeColumn& time) {
  if (array.shape.size() != 1) fail(ErrorCode::shape_mismatch, where, array.text(), "times of shape (rows,)");
  if (array.type.kind == ElementKind::text) return text_times(array, where, options, name, time);
  if (array.type.kind == ElementKind::boolean || array.type.kind == ElementKind::row)
    fail(ErrorCode::unsupported_file_dtype, where, array.text(),
         "times as integers, floating-point numbers, datetime64 or text");
  time.integer = array.type.kind != ElementKind::real;
  time.coarse = !time.integer && array.type.bytes < 8;
  set_unit(array, options, name, time);
  check_precision(array, where);
  std::vector<std::int64_t> times(static_cast<std::size_t>(array.size()));
  const std::int64_t scale = nanoseconds_of(time.unit);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    if (time.integer)
      if (const auto whole = element_i64(array, index);
          whole && *whole != kNotATime && !__builtin_mul_overflow(*whole, scale, &times[i]))
        continue;
    ParseResult result = ParseResult::out_of_range;
    std::string got;
    if (!time.integer) {
      result = time_from_f64(element_f64(array, index), time.unit, times[i]);
      if (result == ParseResult::good) continue;
      got = real_text(element_f64(array, index));
    } else {
      got = element_digits(array, index);
      result = parse_time(got, time.unit, times[i]);
      if (time.form == TimeForm::datetime64 && element_i64(array, index) == kNotATime) {
        result = ParseResult::not_finite;
        got = "NaT, in";
      }
    }
    if (result != ParseResult::good) fail_time(where, index, got, result, time);
  }
  return times;
}

std::optional<TimeUnit> unit_of_dates(std::span<const double> times, TimeUnit usual) {
  constexpr double kFirst = 631'152'000, kLast = 4'102'444'800;  // 1990 and 2100, in seconds since 1970
  constexpr double kSlow = 2, kFast = 1e-5;                      // seconds between the samples of a recorder
  if (times.empty()) return {};
  const auto [least, greatest] = std::minmax_element(times.begin(), times.end());
  std::vector<double> steps;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] > times[i - 1]) steps.push_back(times[i] - times[i - 1]);
  if (!steps.empty())
    std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
  const double step = steps.empty() ? 0 : steps[steps.size() / 2];
  const auto seconds = [](TimeUnit unit) { return 1e-9 * static_cast<double>(nanoseconds_of(unit)); };
  for (const TimeUnit unit :
       {TimeUnit::seconds, TimeUnit::milliseconds, TimeUnit::microseconds, TimeUnit::nanoseconds}) {
    if (!(*least * seconds(unit) >= kFirst && *greatest * seconds(unit) <= kLast)) continue;
    const bool slow = step * seconds(unit) > kSlow;
    const double usual_step = step * seconds(usual);
    if (slow && unit != usual && usual_step >= kFast && usual_step <= kSlow) return {};
    return unit;
  }
  return {};
}

std::optional<ChosenTimes> choose_times(Recording& recording, const std::vector<std::string>& names,
                                        const TimeOptions& options) {
  const std::vector<TimePair> pairs = find_time_pairs(names);
  TimeColumn& time = recording.time;
  const auto take = [&](std::size_t index, TimeChoice choice) {
    ChosenTimes chosen{index, {}};
    if (const auto pair = std::ranges::find(pairs, index, &TimePair::seconds); pair != pairs.end()) {
      chosen.second = pair->nanoseconds;
      time.form = TimeForm::pair;
      time.second_name = names[pair->nanoseconds];
    }
    time.name = names[index];
    time.choice = choice;
    return chosen;
  };
  if (!options.name.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == options.name) return take(i, TimeChoice::option);
    for (const TimePair& pair : pairs) {
      TimeColumn joined;
      joined.name = names[pair.seconds];
      if (joined_time_name(joined) == options.name) return take(pair.seconds, TimeChoice::option);
    }
    return {};
  }
  const std::vector<std::size_t> usual = find_time_names(names);
  if (usual.empty() && pairs.empty()) return {};
  const ChosenTimes chosen = take(usual.empty() ? pairs[0].seconds : usual[0], TimeChoice::known_name);
  std::vector<std::size_t> others(usual);
  for (const TimePair& pair : pairs)
    if (std::ranges::find(usual, pair.seconds) == usual.end()) others.push_back(pair.seconds);
  for (const std::size_t other : others)
    if (other != chosen.index && other != chosen.second) recording.other_time_names.push_back(names[other]);
  return chosen;
}

void warn_of_zone(Recording& recording, const TimeOptions& options) {
  const TimeColumn& time = recording.time;
  if (time.form != TimeForm::iso8601) return;
  const std::string name = "'" + display_text(time.name) + "'";
  if (time.iso.zone.empty())
    recording.warnings.push_back(
        {"zone_assumed", recording.where + ": times of " + name + " have no zone and were read as UTC"});
  if (options.unit)
    recording.warnings.push_back({"unit_unused", recording.where + ": the unit " +
                                                     std::string(to_string(*options.unit)) +
                                                     " does not apply to the ISO 8601 times of " + name});
}

std::int64_t join_pair(const Recording& recording, std::int64_t row, std::int64_t seconds, std::int64_t nanoseconds) {
  const std::string got = std::to_string(seconds) + " s and " + std::to_string(nanoseconds) + " ns";
  if (nanoseconds < 0 || nanoseconds >= kSecond)
    fail(ErrorCode::bad_text, recording.place(row), got, "from 0 to 999,999,999 nanoseconds beside whole seconds");
  const __int128 sum = static_cast<__int128>(seconds) * kSecond + nanoseconds;
  if (sum != static_cast<std::int64_t>(sum))
    fail(ErrorCode::time_overflow, recording.place(row), got,
         "a time within 292 years of 0, the range of int64 nanoseconds");
  return static_cast<std::int64_t>(sum);
}

std::string joined_time_name(const TimeColumn& time) {
  const std::size_t end = time.name.find_last_of("._/ ");
  return end == std::string::npos || end == 0 ? "timestamp" : time.name.substr(0, end);
}

std::optional<std::vector<std::int64_t>> whole_times(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit) {
  const std::int64_t scale = nanoseconds_of(unit);
  std::vector<std::int64_t> whole;
  whole.reserve(nanoseconds.size());
  for (const std::int64_t time : nanoseconds) {
    if (time % scale != 0) return {};
    whole.push_back(time / scale);
  }
  return whole;
}

ChosenTimes find_array_times(Recording& recording, const std::vector<std::string>& names, const TimeOptions& options,
                             std::optional<std::size_t> dates) {
  if (const auto chosen = choose_times(recording, names, options)) return *chosen;
  if (dates) {
    recording.time.name = names[*dates];
    recording.time.choice = TimeChoice::only_dates;
    return {*dates, {}};
  }
  if (options.only_times && names.size() == 1 && options.name.empty()) {
    recording.time.name = names[0];
    recording.time.choice = TimeChoice::only_array;
    return {};
  }
  const std::string there = joined(names, ", ", display_text);
  fail(ErrorCode::array_missing, recording.where,
       !options.name.empty() ? "no array '" + display_text(options.name) + "'"
       : there.empty()       ? "no arrays"
                             : "arrays " + there,
       !options.name.empty() ? (there.empty() ? "an archive with arrays" : "one of: " + there)
                             : "an array named timestamp, timestamps, time, times, t or stamps",
       "Name the array of times with " + options.option + ".");
}

std::vector<std::int64_t> pair_times(Recording& recording, const Array& seconds, const Array& nanoseconds,
                                     const std::string& where) {
  for (const Array* array : {&seconds, &nanoseconds})
    if (array->shape.size() != 1 || array->type.kind != ElementKind::integer || array->size() != seconds.size())
      fail(ErrorCode::shape_mismatch, where, seconds.text() + " and " + nanoseconds.text(),
           "whole seconds and nanoseconds, each of shape (rows,)");
  recording.time.unit_source = UnitSource::format;
  recording.time.integer = true;
  std::vector<std::int64_t> times;
  for (std::int64_t row = 0; row < seconds.size(); ++row)
    times.push_back(join_pair(recording, row,
                              element_i64(seconds, row).value_or(std::numeric_limits<std::int64_t>::max()),
                              element_i64(nanoseconds, row).value_or(-1)));
  return times;
}

std::vector<std::int64_t> array_offsets(const Array& array, const std::string& where, std::int64_t rows) {
  const auto fail = [&](std::string got) {
    tmaops::fail(
        ErrorCode::bad_offsets, where, got,
        "row numbers from 0 to " + std::to_string(rows) + " that never decrease, one more than there are episodes");
  };
  if (array.shape.size() != 1 || array.shape[0] < 2 || array.type.kind != ElementKind::integer) fail(array.text());
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    offsets.push_back(element_i64(array, i).value_or(-1));
    if (i > 0 && offsets.back() < offsets[offsets.size() - 2]) fail("a decrease at " + std::to_string(i));
  }
  if (offsets.front() != 0 || offsets.back() != rows)
    fail("offsets from " + std::to_string(offsets.front()) + " to " + std::to_string(offsets.back()));
  return offsets;
}

namespace {

/// How to tell objects apart whose rows alternate: a column of text or whole numbers that has other values in two
/// neighbouring rows, and each of them in other rows too.
std::string group_hint(const Recording& recording, std::int64_t row) {
  for (const Column& column : recording.columns) {
    const ElementKind kind = column.data.type.kind;
    if (column.width() != 1 || (kind != ElementKind::text && kind != ElementKind::integer)) continue;
    const auto value = [&](std::int64_t at) {
      return kind == ElementKind::text ? element_text(column.data, at) : element_digits(column.data, at);
    };
    const std::string before = value(row - 1), now = value(row);
    std::int64_t same[2] = {0, 0};
    for (std::int64_t other = 0; other < recording.rows(); ++other) {
      const std::string there = value(other);
      same[0] += there == before;
      same[1] += there == now;
    }
    if (before != now && same[0] > 1 && same[1] > 1)
      return "If the rows of each value of '" + display_text(column.name) + "' belong together, pass --group '" +
             display_text(column.name) + "'.";
  }
  return "";
}

}  // namespace

void check_order(const Recording& recording, bool allow_duplicates) {
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      const std::int64_t before = recording.times[static_cast<std::size_t>(row - 1)];
      const std::int64_t now = recording.times[static_cast<std::size_t>(row)];
      if (now < before)
        fail(ErrorCode::times_not_sorted, recording.place(row), seconds_text(now) + " after " + seconds_text(before),
             "times that increase from row to row", group_hint(recording, row));
      if (now == before && !allow_duplicates) {
        const std::string hint = group_hint(recording, row);
        fail(ErrorCode::duplicate_times, recording.place(row), "twice " + seconds_text(now), "different times",
             !hint.empty() ? hint : "Remove one of the two, or pass --duplicates last: the later sample then wins.");
      }
    }
}

}  // namespace tmaops::recording
