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

[[noreturn]] void fail_time(const std::string& place, const std::string& got, ParseResult result,
                            const TimeColumn& time) {
  const bool finite = result != ParseResult::not_finite;
  const std::string unit = time.form == TimeForm::iso8601 || !finite ? "" : " " + std::string(to_string(time.unit));
  fail(finite ? ErrorCode::time_overflow : ErrorCode::times_not_finite, place, got + unit,
       finite ? "a time within 292 years of 0, the range of int64 nanoseconds" : "a finite time",
       finite && time.form == TimeForm::number ? "Name the unit with --time-unit." : "");
}

/// Those of the first rows and the last one, as far as they are numbers.
template <class Number>
std::vector<double> some_numbers(std::int64_t rows, Number number) {
  constexpr std::int64_t kLooked = 1000;
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < rows; i = i + 1 < kLooked ? i + 1 : std::max(i + 1, rows - 1))
    if (const std::optional<double> value = number(i); value && std::isfinite(*value)) numbers.push_back(*value);
  return numbers;
}

/// The median of the steps forward; of a single time its distance from 0.
double median_step(std::span<const double> times) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] > times[i - 1]) steps.push_back(times[i] - times[i - 1]);
  if (steps.empty()) return times.empty() ? 0 : std::abs(times[0]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

/// Refuses day numbers, and the ticks of Windows (since 1601) and .NET (since the year 1), by their sizes from 1990 to
/// 2100: read as seconds and nanoseconds they would be in the wrong scale.
void refuse_other_clocks(const std::vector<double>& times, bool whole, const std::string& where) {
  if (times.empty()) return;
  const auto [least, greatest] = std::ranges::minmax(times);
  const auto within = [&](double first, double last) { return least >= first && greatest <= last; };
  constexpr double kDayStep = 1e-4;  // 8.6 seconds; as seconds 10 kHz
  const bool days = within(32'874, 88'069) || within(726'834, 767'011) || within(2'447'892, 2'488'070);
  if (!whole && days && median_step(times) < kDayStep)
    fail(ErrorCode::bad_parameter, where, "day numbers from " + real_text(least) + " on",
         "seconds since 1970, (t - E) * 86400 with E = 25569 of Excel, 719529 of MATLAB, 2440587.5 of Julian days and "
         "40587 of modified ones; or the unit s, if they are seconds");
  const auto digits = [&](double day) {  // YYYYMMDD, and what follows it
    return std::ranges::all_of(times, [&](double time) {
      const auto date = static_cast<std::int64_t>(time / day), of_month = date % 100, month = date / 100 % 100;
      return date > 19'900'000 && date < 21'010'000 && month >= 1 && month <= 12 && of_month >= 1 && of_month <= 31;
    });
  };
  if (whole && (digits(1) || digits(1e6) || digits(1e9)))
    fail(ErrorCode::bad_parameter, where, "dates in digits from " + std::to_string(std::llround(least)) + " on",
         "ISO 8601, or datetimes (pandas.to_datetime makes them, with format='%Y%m%d%H%M%S')");
  const bool windows = within(1.2275e17, 1.5748e17), dot_net = within(6.2766e17, 6.6239e17);
  if (windows || dot_net)
    fail(ErrorCode::bad_parameter, where, "ticks of 100 ns from " + real_text(least) + " on",
         std::string("nanoseconds since 1970, (t - ") + (windows ? "116444736000000000" : "621355968000000000") +
             ") * 100; or the unit ns, if they are nanoseconds");
}

/// The unit by an option, the name, or values. number(i): of row i, nothing where it is none.
template <class Number>
void set_unit(std::int64_t rows, Number number, const TimeOptions& options, std::string_view name, TimeColumn& time,
              const std::string& where) {
  if (options.unit || unit_in_name(name)) {
    time.unit = options.unit ? *options.unit : *unit_in_name(name);
    time.unit_source = options.unit ? UnitSource::option : UnitSource::name;
    return;
  }
  const std::vector<double> numbers = some_numbers(rows, number);
  refuse_other_clocks(numbers, time.integer, where);
  const FoundUnit found = find_unit(numbers, time.integer);
  time.unit = found.unit;
  time.unit_source = found.source;
  time.unit_doubt = found.doubt;
}

/// Whether dates whose year is last begin with the month or the day: both may fit, which is said.
template <class Text>
void find_date_order(std::int64_t rows, const Text& text, TimeColumn& time) {
  const auto fits = [&](char order) {
    std::int64_t row = 0, to = 0;
    IsoStyle style{.order = order};
    while (row < rows && parse_iso_time(text(row), to, style) != ParseResult::not_a_number) ++row;
    return row == rows && style.order == order;
  };
  const bool month = fits('M'), day = fits('D');  // neither fits times of day and ISO 8601
  time.iso.order = day && (!month || time.iso.mark == '.') ? 'D' : 'M';
  if (month && day)
    time.unit_doubt = std::string("was read as ") + (time.iso.order == 'D' ? "day" : "month") +
                      " first, and the other order fits as well (ISO 8601 has one alone)";
}

}  // namespace

std::vector<std::int64_t> text_times(const Array& texts, const PlaceOf& place, const Refuse& refuse,
                                     const TimeOptions& options, std::string_view name, TimeColumn& time, bool real) {
  std::string buffer;
  const auto text = [&](std::int64_t row) -> std::string_view {
    return texts.ragged() ? ragged_text(texts, row) : std::string_view(buffer = element_text(texts, row));
  };
  const std::int64_t rows = texts.size();
  std::vector<std::int64_t> times(static_cast<std::size_t>(rows));
  const bool dates = rows != 0 && parse_iso_time(text(0), times[0], time.iso) != ParseResult::not_a_number;
  time.integer = !dates && !real;
  for (std::int64_t row = 0; time.integer && row < rows; ++row) time.integer = is_whole(text(row));
  if (dates) {
    time.form = TimeForm::iso8601;
    time.unit_source = UnitSource::format;
    find_date_order(rows, text, time);
  } else {
    const auto number = [&](std::int64_t row) -> std::optional<double> {
      double value = 0;
      return parse_real(text(row), value) == ParseResult::good ? std::optional(value) : std::nullopt;
    };
    set_unit(rows, number, options, name, time, rows == 0 ? "" : place(0));
  }
  std::int64_t midnights = 0;  // nanoseconds
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string_view own = text(row);
    std::int64_t& to = times[static_cast<std::size_t>(row)];
    IsoStyle style{.order = time.iso.order};
    const ParseResult result = dates ? parse_iso_time(own, to, style) : parse_time(own, time.unit, to);
    if (result == ParseResult::not_a_number || (dates && row > 0 && style.order != time.iso.order))
      refuse(row, dates ? "a date and time of the form of the rows before (ISO 8601 has one form alone)"
                        : "a number, as a time in " + std::string(to_string(time.unit)) +
                              ", or ISO 8601 (pandas.to_datetime makes it of other dates, to_timedelta of durations)");
    if (result != ParseResult::good) fail_time(place(row), display_text(own), result, time);
    if (row == 0) time.iso = style;
    if (dates && style.zone.empty() != time.iso.zone.empty())
      refuse(row, time.iso.zone.empty() ? "a time without a zone, as before" : "a zone, as before");
    if (dates && style.order == 0) {
      if (row > 0 && times[static_cast<std::size_t>(row) - 1] - to - midnights > kWholeDay / 2) midnights += kWholeDay;
      to += midnights;
    }
  }
  return times;
}

std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const TimeOptions& options,
                                      std::string_view name, TimeColumn& time) {
  if (array.shape.empty() || array.size() != array.shape[0])
    fail(ErrorCode::shape_mismatch, where, array.text(), "times of shape (rows,) or (rows, 1)");
  const auto place = [&](std::int64_t row) { return where + ": row " + std::to_string(row); };
  const auto refuse = [&](std::int64_t row, const std::string& needed) {
    fail(ErrorCode::bad_text, place(row), "'" + display_text(element_text(array, row)) + "'", needed);
  };
  if (array.type.kind == ElementKind::text) return text_times(array, place, refuse, options, name, time);
  if (array.type.kind == ElementKind::boolean || array.type.kind == ElementKind::row)
    fail(ErrorCode::unsupported_file_dtype, where, array.text(),
         "times as integers, floating-point numbers, datetime64 or text (dates as datetime64[ns], decimals as f8)");
  time.integer = array.type.kind != ElementKind::real;
  time.coarse = !time.integer && array.type.bytes < 8;
  if (array.type.kind == ElementKind::time) {
    time.form = TimeForm::datetime64;
    time.unit = unit_of_datetime(array.type);
    time.unit_source = UnitSource::format;
  } else {
    const auto number = [&](std::int64_t row) { return std::optional(element_f64(array, row)); };
    set_unit(array.size(), number, options, name, time, where);
  }
  check_precision(array, where);
  std::vector<std::int64_t> times(static_cast<std::size_t>(array.size()));
  const std::int64_t scale = nanoseconds_of(time.unit);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const auto whole = time.integer ? element_i64(array, index) : std::nullopt;
    const bool none = whole == kNotATime && time.form == TimeForm::datetime64;
    ParseResult result = none ? ParseResult::not_finite : ParseResult::out_of_range;
    if (!time.integer)
      result = time_from_f64(element_f64(array, index), time.unit, times[i]);
    else if (whole && *whole != kNotATime && !__builtin_mul_overflow(*whole, scale, &times[i]))
      continue;
    if (result != ParseResult::good)
      fail_time(place(index),
                none           ? "NaT"
                : time.integer ? element_digits(array, index)
                               : real_text(element_f64(array, index)),
                result, time);
  }
  return times;
}

namespace {

/// Minutes, hours and days, which no times here have.
bool names_longer_unit(const std::string& name) {
  const std::size_t at = name.find_last_of("[(_") + 1, end = name.find_last_not_of("])") + 1;
  const std::string word = at == 0 || end < at ? "" : lower_case(name.substr(at, end - at));
  return std::ranges::count(split_list("min,mins,minutes,h,hr,hrs,hours,days"), word) != 0;
}

/// Whether times are hours, minutes and seconds in one number, as NMEA has them: 101159, 101200.
bool are_clock_digits(const std::vector<std::int64_t>& times) {
  constexpr std::int64_t kMinute = 100 * kSecond, kJump = 40 * kSecond;
  const auto is_no_clock = [](std::int64_t time) {
    return time < 0 || time >= 2400 * kMinute || time % kMinute >= 60 * kSecond || time / kMinute % 100 >= 60;
  };
  const auto jumps = [](std::int64_t a, std::int64_t b) { return b - a > kJump && b - a < kJump + kSecond * 20; };
  return std::ranges::none_of(times, is_no_clock) && std::ranges::adjacent_find(times, jumps) != times.end();
}

double seconds_of(TimeUnit unit) { return 1e-9 * static_cast<double>(nanoseconds_of(unit)); }

// Steps of whole numbers below the first are seconds, below the second ms, below the third us. Recorders have 0.1 Hz to
// 2 kHz, which is then what each unit holds.
constexpr double kSecondSteps = 10, kMillisecondSteps = 500, kMicrosecondSteps = 500'000;

TimeUnit unit_of_step(double step) {
  if (step < kSecondSteps) return TimeUnit::seconds;
  if (step < kMillisecondSteps) return TimeUnit::milliseconds;
  return step < kMicrosecondSteps ? TimeUnit::microseconds : TimeUnit::nanoseconds;
}

/// The other unit that such a step may have: ms for a few whole seconds, ns for the periods of audio.
std::optional<TimeUnit> other_unit_of_step(double step) {
  if (step < kSecondSteps) return TimeUnit::milliseconds;
  for (const double hz : {8e3, 11'025.0, 16e3, 22'050.0, 32e3, 44.1e3, 48e3, 96e3})
    if (std::abs(step - 1e9 / hz) < 1) return TimeUnit::nanoseconds;
  return {};
}

/// The unit in which times are dates from 1990 to 2100; nothing where there is none, or where they step like the
/// samples of a recorder in the `usual` unit and hardly so in that one.
std::optional<TimeUnit> unit_of_dates(double least, double greatest, double step, TimeUnit usual) {
  constexpr double kFirst = 631'152'000, kLast = 4'102'444'800;  // 1990 and 2100, in seconds since 1970
  constexpr double kSlow = 2, kFast = 1e-5;                      // seconds between the samples of a recorder
  constexpr double kSlowest = 60;                                // of one that counts seconds since 1970
  for (const TimeUnit unit :
       {TimeUnit::seconds, TimeUnit::milliseconds, TimeUnit::microseconds, TimeUnit::nanoseconds}) {
    if (!(least * seconds_of(unit) >= kFirst && greatest * seconds_of(unit) <= kLast)) continue;
    const bool slow = step * seconds_of(unit) > (unit == TimeUnit::seconds ? kSlowest : kSlow);
    const double usual_step = step * seconds_of(usual);
    if (slow && unit != usual && usual_step >= kFast && usual_step <= kSlow) return {};
    return unit;
  }
  return {};
}

}  // namespace

FoundUnit find_unit(std::span<const double> times, bool whole) {
  FoundUnit found;
  if (times.empty()) return found;
  const auto [least, greatest] = std::minmax_element(times.begin(), times.end());
  const double step = median_step(times);
  if (whole) found.unit = unit_of_step(step);
  if (found.unit != TimeUnit::seconds) found.source = UnitSource::step;
  const double one = times.size() == 1 ? 0 : step;
  if (const auto dates = unit_of_dates(*least, *greatest, one, found.unit)) return {*dates, UnitSource::dates, {}};
  const double largest = std::max(std::abs(*least), std::abs(*greatest));
  for (const TimeUnit smaller : {TimeUnit::milliseconds, TimeUnit::microseconds, TimeUnit::nanoseconds})
    if (smaller > found.unit && largest * seconds_of(found.unit) > 0x1p63 * 1e-9)
      found = {smaller, UnitSource::only_fit, {}};
  const auto other =
      whole && times.size() > 1 && found.source != UnitSource::only_fit ? other_unit_of_step(step) : std::nullopt;
  if (other)
    found.doubt = "steps by " + real_text(step) + ", which was read as " + std::string(to_string(found.unit)) +
                  " and may as well be " + std::string(to_string(*other)) +
                  (step == 1 && *least >= 7'305 && *greatest <= 88'069 ? ", or days (t * 86400 makes seconds)" : "");
  return found;
}

TimeUnit unit_read_back(std::span<const std::int64_t> nanoseconds, TimeUnit unit, bool whole) {
  const auto number = [&](std::int64_t row) {
    return std::optional(static_cast<double>(nanoseconds[static_cast<std::size_t>(row)]) * 1e-9 / seconds_of(unit));
  };
  return find_unit(some_numbers(static_cast<std::int64_t>(nanoseconds.size()), number), whole).unit;
}

void warn_of_times(Recording& recording, const TimeOptions& options) {
  const TimeColumn& time = recording.time;
  const std::string name = "'" + display_text(time.name) + "'", of = recording.where + ": the time " + name + " ";
  std::string doubt = time.unit_doubt;
  const bool number = doubt.empty() && time.form == TimeForm::number && !options.unit;
  if (number && names_longer_unit(time.name)) doubt = "has a longer unit in its name, and is read in ";
  if (number && are_clock_digits(recording.times)) doubt = "is hhmmss by its values, and is read in ";
  if (number && !doubt.empty()) doubt += to_string(time.unit);
  const bool dates = time.form == TimeForm::iso8601;
  if (!doubt.empty())
    recording.warnings.push_back(dates ? Note{"date_order", of + doubt}
                                       : Note{"unit_ambiguous", of + doubt + " (--time-unit says which is right)"});
  if (!dates) return;
  if (time.iso.order == 0 && std::ranges::any_of(recording.times, [](std::int64_t at) { return at >= kWholeDay; }))
    recording.warnings.push_back(
        {"past_midnight", of + "is a time of day that passes midnight, where a day was added"});
  if (time.iso.order != 0 && time.iso.zone.empty())
    recording.warnings.push_back(
        {"zone_assumed", recording.where + ": times of " + name + " have no zone and were read as UTC"});
  if (options.unit) recording.warnings.push_back({"unit_unused", of + "is text of dates, which have no unit"});
}

std::int64_t join_pair(const Recording& recording, std::int64_t row, std::int64_t seconds, std::int64_t fraction) {
  const std::int64_t scale = nanoseconds_of(recording.time.second_unit);
  const std::string unit(to_string(recording.time.second_unit));
  const std::string got = std::to_string(seconds) + " s and " + std::to_string(fraction) + " " + unit;
  if (fraction < 0 || fraction >= kSecond / scale)
    fail(ErrorCode::bad_text, recording.place(row), got,
         "from 0 to " + std::to_string(kSecond / scale - 1) + " " + unit + " beside whole seconds");
  const __int128 sum = static_cast<__int128>(seconds) * kSecond + fraction * scale;
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

}  // namespace tmaops::recording
