#include "recording/arrays.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"

namespace tmaops::recording {
namespace {

// datetime64 in a unit, or in nanoseconds where that unit cannot hold all times.
Array datetime_array(const std::vector<std::int64_t>& times, TimeUnit unit) {
  const auto whole = whole_times(times, unit);
  if (!whole) unit = TimeUnit::nanoseconds;
  Array array = make_array(whole ? *whole : times, {std::ssize(times)});
  array.type = *element_type("<M8[" + std::string(to_string(unit)) + "]");
  return array;
}

bool all_in_f64(const Recording& recording, TimeUnit unit) {
  return std::all_of(recording.times.begin(), recording.times.end(), [&](std::int64_t time) {
    std::int64_t back = 0;
    return time_from_f64(time_to_f64(time, unit), unit, back) == ParseResult::good && back == time;
  });
}

Array array_of_texts(std::int64_t rows, const std::function<std::string(std::int64_t)>& text) {
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < rows; ++row) texts.push_back(text(row));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
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
  if (as_read && (!decimal || time.unit_source > UnitSource::name)) name = time.name;  // a reader finds the unit again
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

/// The least and the greatest number of an array, where it holds whole ones alone.
std::optional<std::pair<std::int64_t, std::int64_t>> whole_range(const Array& array) {
  std::pair range{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const auto value = array.type.kind == ElementKind::integer ? element_i64(array, i) : std::nullopt;
    if (!value) return {};
    range = {std::min(range.first, *value), std::max(range.second, *value)};
  }
  return range;
}

/// Whether the values of an array can be times that rise, but for a few steps back to where an episode begins.
bool rises(const Array& array, const std::string& name) {
  try {
    TimeColumn time;
    const std::vector<std::int64_t> times = array_times(array, name, {}, name, time);
    std::size_t up = 0, down = 0;
    for (std::size_t i = 1; i < times.size(); ++i) (times[i] > times[i - 1] ? up : down) += times[i] != times[i - 1];
    return up > 8 * down;
  } catch (const Error&) {
    return false;
  }
}

/// The text of a date, or of a datetime64: 2026-01-14 where it has no time of day.
std::string date_text(const Array& dates, std::int64_t row) {
  if (dates.type.kind != ElementKind::time) return element_text(dates, row);
  const std::int64_t scale = nanoseconds_of(unit_of_datetime(dates.type)), count = *element_i64(dates, row);
  return iso_time_text({count / (kSecond / scale), 0}, {}, 0).substr(0, count % (kWholeDay / scale) == 0 ? 10 : 19);
}

/// The dates of times of day: the first column of dates alone whose name says so.
std::optional<std::size_t> dates_beside(std::size_t times, const std::vector<std::string>& names,
                                        const ArrayOf& array) {
  const auto begins = [&](const Array& values, ElementKind other, const std::string& more) {
    const ElementKind kind = values.type.kind;
    std::int64_t time = 0;
    IsoStyle style;
    return (kind == ElementKind::text || kind == other) && values.size() != 0 && values.size() == array(times).size() &&
           parse_iso_time(date_text(values, 0) + more, time, style) == ParseResult::good &&
           (style.order == 0) == more.empty();
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto named = [&](const std::string& word) { return lower_case(names[i]).find(word) != std::string::npos; };
    if (i != times && std::ranges::any_of(split_list("date,datum,fecha,data"), named) &&
        begins(array(i), ElementKind::time, " 00:00") && begins(array(times), ElementKind::text, ""))
      return i;
  }
  return {};
}

/// Dates as they were given: text, or datetime64.
Array dates_like(Array texts, const ElementType& type) {
  if (type.kind == ElementKind::text) return texts;
  std::vector<std::int64_t> dates(static_cast<std::size_t>(texts.size()));
  IsoStyle style;
  for (std::size_t i = 0; i < dates.size(); ++i)
    parse_iso_time(element_text(texts, static_cast<std::int64_t>(i)) + " 00:00", dates[i], style);
  return datetime_array(dates, unit_of_datetime(type));
}

}  // namespace

Array joined_texts(const Array& dates, const Array& times) {
  return array_of_texts(times.size(),
                        [&](std::int64_t row) { return date_text(dates, row) + " " + element_text(times, row); });
}

std::string iso_text_of(const TimeColumn& time, std::int64_t nanoseconds, int digits, std::size_t part) {
  const std::string text = iso_time_text(nanoseconds, time.iso, digits);
  const std::size_t date = text.find(time.iso.separator);  // of two columns
  return time.second_name.empty() ? text : part == 0 ? text.substr(date + 1) : text.substr(0, date);
}

bool fits_pair(const Recording& recording) {
  return recording.time.form == TimeForm::pair && whole_times(recording.times, recording.time.second_unit);
}

std::optional<ChosenTimes> choose_times(Recording& recording, const std::vector<std::string>& names,
                                        const TimeOptions& options, const ArrayOf& array) {
  std::vector<TimePair> pairs = find_time_pairs(names);
  std::erase_if(pairs, [&](const TimePair& pair) {
    if (pair.certain) return false;
    const auto fractions = whole_range(array(pair.fraction));
    return !fractions || fractions->first < 0 || fractions->second >= kSecond / nanoseconds_of(pair.unit) ||
           !whole_range(array(pair.seconds));
  });
  TimeColumn& time = recording.time;
  const auto take = [&](std::size_t index, TimeChoice choice) {
    ChosenTimes chosen{index, {}};
    if (const auto pair = std::ranges::find(pairs, index, &TimePair::seconds); pair != pairs.end()) {
      chosen.second = pair->fraction;
      time.form = TimeForm::pair;
      time.second_unit = pair->unit;
    } else {
      chosen.second = dates_beside(index, names, array);
    }
    if (chosen.second) time.second_name = names[*chosen.second];
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
  std::size_t first = usual.empty() ? pairs[0].seconds : usual[0];
  if (const auto pair = std::ranges::find(pairs, first, &TimePair::fraction); pair != pairs.end())
    first = pair->seconds;
  const bool is_pair = std::ranges::find(pairs, first, &TimePair::seconds) != pairs.end();
  // Whole seconds beside the same times in a finer unit: timestamp_s and timestamp_ns.
  for (const std::size_t other : usual)
    if (const auto one = unit_in_name(names[first]), two = unit_in_name(names[other]);
        !is_pair && one && two && *two > *one && whole_range(array(first)) &&
        name_with_unit(names[first], {}) == name_with_unit(names[other], {}))
      first = other;
  const ChosenTimes chosen = take(first, TimeChoice::known_name);
  std::vector<std::size_t> others(usual);
  for (const TimePair& pair : pairs)
    if (std::ranges::find(usual, pair.seconds) == usual.end()) others.push_back(pair.seconds);
  for (const std::size_t other : others)
    if (other != chosen.index && other != chosen.second) recording.other_time_names.push_back(names[other]);
  return chosen;
}

std::optional<ChosenTimes> choose_like_times(Recording& recording, const std::vector<std::string>& names,
                                             const TimeOptions& options, const ArrayOf& array) {
  if (!options.name.empty()) return {};
  std::vector<std::size_t> dates, like = names_like_times(names);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (array(i).type.kind == ElementKind::time && array(i).shape.size() == 1) dates.push_back(i);
  if (dates.size() == 1) like = dates;
  std::erase_if(like, [&](std::size_t i) { return dates.size() != 1 && !rises(array(i), names[i]); });
  if (like.empty()) return {};
  recording.time.choice = like == dates ? TimeChoice::only_dates : TimeChoice::like_name;
  recording.time.name = names[like[0]];
  const auto second = dates_beside(like[0], names, array);
  if (second) recording.time.second_name = names[*second];
  for (const std::size_t i : like)
    if (i != like[0] && i != second) recording.other_time_names.push_back(names[i]);
  return ChosenTimes{like[0], second};
}

ChosenTimes find_array_times(Recording& recording, const std::vector<std::string>& names, const TimeOptions& options,
                             const ArrayOf& array) {
  if (const auto chosen = choose_times(recording, names, options, array)) return *chosen;
  if (const auto like = choose_like_times(recording, names, options, array)) return *like;
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
  std::vector<std::string> flat = names;  // without the names of arrays whose shape no times have
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].data.shape.empty() || arrays[i].data.size() != arrays[i].data.shape[0]) flat[i].clear();
  const auto array_of = [&](std::size_t i) { return arrays[i].data; };
  const auto usual = choose_times(recording, flat, options, array_of);
  const ChosenTimes chosen = usual ? *usual : find_array_times(recording, names, options, array_of);
  const auto place = [&](std::size_t i) { return recording.where + ": array '" + display_text(names[i]) + "'"; };
  if (const Column& times = arrays[chosen.index]; times.data.type.kind == ElementKind::row && times.missing > 0)
    fail(ErrorCode::times_not_finite, place(chosen.index),
         std::to_string(times.missing) + (times.missing == 1 ? " null" : " nulls"), "a time in every row");
  Array times = arrays[chosen.index].data;
  const bool pair = recording.time.form == TimeForm::pair;
  if (chosen.second) recording.time.second_source = *chosen.second;
  if (chosen.second && !pair) {
    times = joined_texts(arrays[*chosen.second].data, times);
    recording.time.second_type = arrays[*chosen.second].data.type;
  }
  recording.times = pair ? pair_times(recording, times, arrays[*chosen.second].data, place(chosen.index))
                         : array_times(times, place(chosen.index), options, names[chosen.index], recording.time);
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
  } else if (time.form == TimeForm::iso8601 && (!decimal || time.iso.order == 0)) {
    const int digits = digits_needed(recording.times, TimeUnit::seconds);
    const auto texts = [&](std::size_t part) {
      return array_of_texts(recording.rows(), [&](std::int64_t row) {
        return iso_text_of(time, recording.times[static_cast<std::size_t>(row)], digits, part);
      });
    };
    made.push_back({time.name, texts(0)});
    if (!time.second_name.empty()) made.push_back({time.second_name, dates_like(texts(1), time.second_type)});
  } else if (time.form != TimeForm::pair) {
    const TimeUnit own = time.form == TimeForm::datetime64 ? time.unit : TimeUnit::nanoseconds;
    made.push_back({time.name, datetime_array(recording.times, own)});
  } else {
    std::vector<std::int64_t> seconds, fractions;
    for (const std::int64_t time_of_row : recording.times) {
      seconds.push_back(split_seconds(time_of_row).seconds);
      fractions.push_back(split_seconds(time_of_row).nanoseconds / nanoseconds_of(time.second_unit));
    }
    made.push_back({time.name, make_array(seconds, {recording.rows()})});
    made.push_back({time.second_name, make_array(fractions, {recording.rows()})});
  }
  if (made.size() > 1) made.back().source = time.second_source;
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
