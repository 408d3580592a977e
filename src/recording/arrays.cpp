#include "recording/arrays.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"

namespace tmaops::recording {
namespace {

// datetime64 in the unit that was read, or in nanoseconds where that unit cannot hold all times.
Array datetime_array(const Recording& recording) {
  TimeUnit unit = recording.time.form == TimeForm::datetime64 ? recording.time.unit : TimeUnit::nanoseconds;
  auto whole = whole_times(recording.times, unit);
  if (!whole) unit = TimeUnit::nanoseconds;
  Array array = make_array(whole ? *whole : recording.times, {recording.rows()});
  array.type = *element_type("<M8[" + std::string(to_string(unit)) + "]");
  return array;
}

bool all_in_f64(const Recording& recording, TimeUnit unit) {
  return std::all_of(recording.times.begin(), recording.times.end(), [&](std::int64_t time) {
    std::int64_t back = 0;
    return time_from_f64(time_to_f64(time, unit), unit, back) == ParseResult::good && back == time;
  });
}

/// ISO 8601 as text, in the style of the first time.
Array iso_array(const Recording& recording) {
  const int digits = digits_needed(recording.times, TimeUnit::seconds);
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  texts.reserve(recording.times.size());
  for (const std::int64_t time : recording.times) texts.push_back(iso_time_text(time, recording.time.iso, digits));
  views.assign(texts.begin(), texts.end());
  return make_text_array(views);
}

/// Warns of an array that stays as it is and is about as long as the samples, so that it may hold samples too.
void warn_of_length(const Column& array, Recording& recording) {
  const std::int64_t rows = array.data.shape.empty() ? 0 : array.data.shape[0], samples = recording.rows();
  if (rows > 8 && samples <= 16 * rows && rows <= 16 * samples)
    recording.warnings.push_back({"other_length", recording.where + ": array '" + display_text(array.name) +
                                                      "' stays as it is: it has " + std::to_string(rows) +
                                                      " rows beside " + std::to_string(samples) + " samples"});
}

/// The only array of dates, where there is one.
std::optional<std::size_t> only_dates(const std::vector<Column>& arrays) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].data.type.kind != ElementKind::time || arrays[i].data.shape.size() != 1) continue;
    if (found) return {};
    found = i;
  }
  return found;
}

Column number_times(const Recording& recording, std::optional<TimeUnit> wanted, bool decimal) {
  const TimeColumn& time = recording.time;
  TimeUnit unit = wanted.value_or(time.form == TimeForm::number ? time.unit : TimeUnit::nanoseconds);
  bool integer = unit == TimeUnit::nanoseconds || time.integer;
  if (integer && !wanted && !whole_times(recording.times, unit)) unit = TimeUnit::nanoseconds;
  if (integer && wanted && !whole_times(recording.times, unit)) integer = false;
  if (!integer && decimal && !wanted && !all_in_f64(recording, unit)) {
    unit = TimeUnit::nanoseconds;
    integer = true;
  }
  const bool as_read = integer == time.integer && unit == time.unit && time.form == TimeForm::number;
  std::string name = time.form == TimeForm::pair ? joined_time_name(time) : time.name;
  const TimeUnit assumed = unit_in_name(name).value_or(integer ? TimeUnit::nanoseconds : TimeUnit::seconds);
  const bool changed = unit != time.unit || time.form != TimeForm::number;
  // Nanoseconds that replace another unit are named, even where a reader would assume them.
  if (assumed != unit || (changed && integer && unit_in_name(name) != unit)) name = name_with_unit(name, unit);
  if (as_read && !decimal) name = time.name;
  if (integer && time.unit_source > UnitSource::name &&
      unit_in_name(name).value_or(unit_read_back(recording.times, unit)) != unit)
    name = name_with_unit(name, unit);
  const std::vector<std::int64_t> shape{recording.rows()};
  if (integer) return {name, make_array(*whole_times(recording.times, unit), shape)};
  std::vector<double> real(recording.times.size());
  std::transform(recording.times.begin(), recording.times.end(), real.begin(),
                 [unit](std::int64_t timestamp) { return time_to_f64(timestamp, unit); });
  return {name, make_array(real, shape)};
}

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> whole_range(const Array& array) {
  std::pair range{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const auto value = array.type.kind == ElementKind::integer ? element_i64(array, i) : std::nullopt;
    if (!value) return {};
    range = {std::min(range.first, *value), std::max(range.second, *value)};
  }
  return range;
}

bool fits_pair(const Recording& recording) {
  return recording.time.form == TimeForm::pair && whole_times(recording.times, recording.time.second_unit);
}

ChosenTimes find_array_times(Recording& recording, const std::vector<std::string>& names, const TimeOptions& options,
                             const WholeRange& range, std::optional<std::size_t> dates) {
  if (const auto chosen = choose_times(recording, names, options, range)) return *chosen;
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

std::vector<std::int64_t> pair_times(Recording& recording, const Array& seconds, const Array& fractions,
                                     const std::string& where) {
  for (const Array* array : {&seconds, &fractions})
    if (array->shape.size() != 1 || array->type.kind != ElementKind::integer || array->size() != seconds.size())
      fail(ErrorCode::shape_mismatch, where, seconds.text() + " and " + fractions.text(),
           "whole seconds and whole fractions of a second, each of shape (rows,)");
  recording.time.unit_source = UnitSource::format;
  recording.time.integer = true;
  std::vector<std::int64_t> times;
  for (std::int64_t row = 0; row < seconds.size(); ++row)
    times.push_back(join_pair(recording, row,
                              element_i64(seconds, row).value_or(std::numeric_limits<std::int64_t>::max()),
                              element_i64(fractions, row).value_or(-1)));
  return times;
}

std::optional<std::size_t> find_offsets(const std::vector<std::string>& names, const std::string& wanted,
                                        std::string_view where) {
  const std::vector<std::string> usual{"offsets", "episode_offsets"};
  for (const std::string& name : wanted.empty() ? usual : std::vector{wanted})
    if (const auto found = std::ranges::find(names, name); found != names.end())
      return static_cast<std::size_t>(found - names.begin());
  if (wanted.empty()) return {};
  fail(ErrorCode::array_missing, where, "no array '" + display_text(wanted) + "'",
       names.empty() ? "an archive with arrays" : "one of: " + joined(names, ", ", display_text));
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

Recording from_arrays(std::vector<Column> arrays, std::string where, const TimeOptions& options,
                      const std::string& offsets_array) {
  Recording recording;
  recording.where = std::move(where);
  recording.kind = "array";
  std::vector<std::string> names;
  for (const Column& array : arrays) names.push_back(array.name);
  const std::optional<std::size_t> dates = options.name.empty() ? only_dates(arrays) : std::nullopt;
  std::vector<std::string> flat = names;  // without the names of arrays whose shape no times have
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].data.shape.empty() || arrays[i].data.size() != arrays[i].data.shape[0]) flat[i].clear();
  const auto range = [&](std::size_t i) { return whole_range(arrays[i].data); };
  const auto usual = choose_times(recording, flat, options, range);
  const ChosenTimes chosen = usual ? *usual : find_array_times(recording, names, options, range, dates);
  const auto place = [&](std::size_t i) { return recording.where + ": array '" + display_text(names[i]) + "'"; };
  if (const Column& times = arrays[chosen.index]; times.data.type.kind == ElementKind::row && times.missing > 0)
    fail(ErrorCode::times_not_finite, place(chosen.index),
         std::to_string(times.missing) + (times.missing == 1 ? " null" : " nulls"), "a time in every row");
  recording.times =
      chosen.second
          ? pair_times(recording, arrays[chosen.index].data, arrays[*chosen.second].data, place(chosen.index))
          : array_times(arrays[chosen.index].data, place(chosen.index), options, names[chosen.index], recording.time);
  warn_of_times(recording, options);
  const std::optional<std::size_t> offsets = find_offsets(names, offsets_array, recording.where);
  if (offsets) {
    recording.offsets_name = names[*offsets];
    recording.offsets = array_offsets(arrays[*offsets].data, place(*offsets), recording.rows());
  } else {
    recording.offsets = {0, recording.rows()};
  }
  std::set<std::string> taken;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i == chosen.index || i == chosen.second || i == offsets) continue;
    Column& array = arrays[i];
    array.source = i;
    array.name = unique_name(repaired_utf8(names[i]), taken);
    const auto [id, why] =
        is_utf8(names[i]) ? std::pair{"name_repeated", "stands twice"} : std::pair{"name_not_utf8", "is not UTF-8"};
    if (array.name != names[i])
      recording.warnings.push_back({id, recording.where + ": the name '" + display_text(names[i]) + "' " + why +
                                            " and became '" + array.name + "'"});
    if (array.missing == 0) array.missing = count_missing(array.data);
    const bool has_rows = !array.data.shape.empty() && array.data.shape[0] == recording.rows();
    if (!has_rows) warn_of_length(array, recording);
    (has_rows ? recording.columns : recording.others).push_back(std::move(array));
  }
  recording.time.source = chosen.index;
  return recording;
}

std::vector<Column> time_arrays(const Recording& recording, std::optional<TimeUnit> unit, bool decimal) {
  const TimeColumn& time = recording.time;
  std::vector<Column> made;
  if (unit || time.form == TimeForm::number || (time.form == TimeForm::pair && !fits_pair(recording))) {
    made.push_back(number_times(recording, unit, decimal));
  } else if (time.form == TimeForm::iso8601 && !decimal) {
    made.push_back({time.name, iso_array(recording)});
  } else if (time.form != TimeForm::pair) {
    made.push_back({time.name, datetime_array(recording)});
  } else {
    std::vector<std::int64_t> seconds, fractions;
    for (const std::int64_t time_of_row : recording.times) {
      seconds.push_back(split_seconds(time_of_row).seconds);
      fractions.push_back(split_seconds(time_of_row).nanoseconds / nanoseconds_of(time.second_unit));
    }
    made.push_back({time.name, make_array(seconds, {recording.rows()})});
    made.push_back({time.second_name, make_array(fractions, {recording.rows()})});
  }
  made.front().source = time.source;
  return made;
}

std::vector<Column> to_arrays(const Recording& recording, std::optional<TimeUnit> unit, bool decimal) {
  std::vector<Column> arrays = time_arrays(recording, unit, decimal);
  arrays.insert(arrays.end(), recording.columns.begin(), recording.columns.end());
  if (!recording.offsets_name.empty())
    arrays.push_back(
        {recording.offsets_name, make_array(recording.offsets, {static_cast<std::int64_t>(recording.offsets.size())})});
  arrays.insert(arrays.end(), recording.others.begin(), recording.others.end());
  if (!recording.valid.empty()) arrays.push_back({"valid", make_booleans(recording.valid)});
  return arrays;
}

}  // namespace tmaops::recording
