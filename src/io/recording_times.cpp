// Times of a recording: the column or array that has them, their unit, and their name in the output.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fail.hpp"
#include "io/recording.hpp"

namespace tmaops::io {
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

void set_unit(const Array& array, const ReadOptions& options, std::string_view name, TimeColumn& time) {
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
  }
}

}  // namespace

std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const ReadOptions& options,
                                      std::string_view name, TimeColumn& time) {
  if (array.shape.size() != 1) fail(ErrorCode::shape_mismatch, where, array.text(), "times of shape (rows,)");
  if (array.type.kind == ElementKind::boolean || array.type.kind == ElementKind::text)
    fail(ErrorCode::unsupported_file_dtype, where, array.text(),
         "times as integers, floating-point numbers or datetime64");
  time.integer = array.type.kind != ElementKind::real;
  time.coarse = !time.integer && array.type.bytes < 8;
  set_unit(array, options, name, time);
  check_precision(array, where);
  std::vector<std::int64_t> times(static_cast<std::size_t>(array.size()));
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    ParseResult result = ParseResult::out_of_range;
    std::string got;
    if (!time.integer) {
      result = time_from_f64(element_f64(array, index), time.unit, times[i]);
      got = real_text(element_f64(array, index));
    } else {
      got = element_digits(array, index);
      result = parse_time(got, time.unit, times[i]);
      if (time.form == TimeForm::datetime64 && element_i64(array, index) == kNotATime) {
        result = ParseResult::not_finite;
        got = "NaT, in";
      }
    }
    if (result == ParseResult::good) continue;
    const bool finite = result != ParseResult::not_finite;
    fail(finite ? ErrorCode::time_overflow : ErrorCode::times_not_finite, where + ": row " + std::to_string(i),
         got + " " + std::string(to_string(time.unit)),
         finite ? "a time within 292 years of 0, the range of int64 nanoseconds" : "a finite time",
         finite && time.form == TimeForm::number ? "Name the unit with --time-unit." : "");
  }
  return times;
}

std::optional<ChosenTimes> choose_times(Recording& recording, const std::vector<std::string>& names,
                                        const ReadOptions& options) {
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
  if (!options.times_name.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == options.times_name) return take(i, TimeChoice::option);
    for (const TimePair& pair : pairs) {
      TimeColumn joined;
      joined.name = names[pair.seconds];
      if (joined_time_name(joined) == options.times_name) return take(pair.seconds, TimeChoice::option);
    }
    return {};
  }
  const std::vector<std::size_t> usual = find_time_names(names);
  for (std::size_t i = 1; i < usual.size(); ++i) recording.other_time_names.push_back(names[usual[i]]);
  for (std::size_t i = usual.empty() ? 1 : 0; i < pairs.size(); ++i)
    recording.other_time_names.push_back(names[pairs[i].seconds]);
  if (!usual.empty()) return take(usual[0], TimeChoice::known_name);
  if (!pairs.empty()) return take(pairs[0].seconds, TimeChoice::known_name);
  return {};
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

std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit) {
  const TimeColumn& time = recording.time;
  if (time.form == TimeForm::pair) return name_with_unit(joined_time_name(time), unit);
  // In an output of the same format the name, or its absence, states the unit as it did in the input.
  if (time.form == TimeForm::number && format == recording.format && unit == time.unit) return time.name;
  const bool nanoseconds = format == FileFormat::npz && time.integer;
  const TimeUnit assumed = unit_in_name(time.name).value_or(nanoseconds ? TimeUnit::nanoseconds : TimeUnit::seconds);
  return assumed == unit ? time.name : name_with_unit(time.name, unit);
}

}  // namespace tmaops::io
