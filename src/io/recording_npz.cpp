// Recordings in npz archives: an array of times, arrays with a row per time, and other arrays.
#include <algorithm>
#include <limits>
#include <set>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "io/decimal.hpp"
#include "io/input_file.hpp"
#include "io/npz.hpp"
#include "io/recording.hpp"

namespace tmaops::io {
namespace {

ChosenTimes find_times(Recording& recording, const std::vector<std::string>& names, const ReadOptions& options) {
  if (const auto chosen = choose_times(recording, names, options)) return *chosen;
  if (options.only_times && names.size() == 1 && options.times_name.empty()) {
    recording.time.name = names[0];
    recording.time.choice = TimeChoice::only_array;
    return {};
  }
  const std::string there = joined(names, ", ", display_text);
  fail(ErrorCode::array_missing, recording.where,
       !options.times_name.empty() ? "no array '" + display_text(options.times_name) + "'"
       : there.empty()             ? "no arrays"
                                   : "arrays " + there,
       !options.times_name.empty() ? (there.empty() ? "an archive with arrays" : "one of: " + there)
                                   : "an array named timestamp, timestamps, time, times, t or stamps",
       "Name the array of times with " + options.times_option + ".");
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

std::vector<std::int64_t> read_offsets(const Array& array, const std::string& where, std::int64_t rows) {
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

// A name that every reader takes: UTF-8, no absolute path, no `..`, and different from the other names.
std::string member_name(std::string name, std::set<std::string>& taken) {
  name = repaired_utf8(name);
  if (name.empty()) name = "column";
  for (char& c : name)
    if (c == '\\' || c == '\0' || c == ':') c = '_';
  if (name[0] == '/') name[0] = '_';
  for (std::size_t at = name.find(".."); at != std::string::npos; at = name.find("..", at + 1)) name[at] = '_';
  return unique_name(name, taken);
}

}  // namespace

Recording parse_npz_recording(const Bytes& file, const std::string& where, const ReadOptions& options) {
  const NpzReader npz(file, where, options.trust_sizes ? ZipLimits::trusting() : ZipLimits{});
  Recording recording;
  recording.where = where;
  recording.format = FileFormat::npz;
  const std::vector<std::string> names = npz.names();
  const ChosenTimes chosen = find_times(recording, names, options);
  const std::string times_where = where + ": array '" + display_text(names[chosen.index]) + "'";
  if (chosen.second) {
    recording.times =
        pair_times(recording, npz.read(names[chosen.index]), npz.read(names[*chosen.second]), times_where);
  } else {
    recording.times =
        array_times(npz.read(names[chosen.index]), times_where, options, names[chosen.index], recording.time);
  }
  if (options.only_times) return recording;

  recording.offsets_name = options.offsets_name;
  for (const std::string_view usual : {"offsets", "episode_offsets"})
    if (recording.offsets_name.empty() && npz.has(usual)) recording.offsets_name = usual;
  if (!recording.offsets_name.empty())
    recording.offsets =
        read_offsets(npz.read(recording.offsets_name), where + ": array '" + display_text(recording.offsets_name) + "'",
                     recording.rows());

  std::set<std::string> taken;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == chosen.index || i == chosen.second || names[i] == recording.offsets_name) continue;
    Column column{unique_name(repaired_utf8(names[i]), taken), npz.read(names[i])};
    if (column.name != names[i])
      recording.warnings.push_back(where + ": the name '" + display_text(names[i]) + "' is not UTF-8 and became '" +
                                   column.name + "'");
    column.missing = count_missing(column.data);
    const bool has_rows = !column.data.shape.empty() && column.data.shape[0] == recording.rows();
    (has_rows ? recording.columns : recording.others).push_back(std::move(column));
  }
  return recording;
}

namespace {

// numpy stores every text of an array with the length of the longest. Larger arrays are out of proportion to their
// text.
constexpr std::size_t kTextBytesPerByte = 64;
constexpr std::size_t kBelievedTextBytes = std::size_t{16} << 20;

void check_text_size(const Recording& recording, const Column& column) {
  if (!column.data.ragged()) return;
  std::size_t bytes = 0;
  for (std::int64_t i = 0; i < column.data.size(); ++i) bytes += ragged_text(column.data, i).size();
  const std::size_t longest = longest_text(column.data);
  const auto rows = static_cast<std::size_t>(column.data.size());
  const std::size_t most = kTextBytesPerByte * bytes + kBelievedTextBytes;
  if (4 * longest <= most / std::max<std::size_t>(rows, 1)) return;
  fail(ErrorCode::bad_parameter, recording.where,
       "text column '" + display_text(column.name) + "' of " + std::to_string(rows) + " rows with " +
           std::to_string(bytes) + " bytes of text, the longest of " + std::to_string(longest) +
           " characters: an npz stores every row with the length of the longest, " +
           std::to_string(4.0 * static_cast<double>(longest) * static_cast<double>(rows) / 1e9).substr(0, 5) +
           " GB in all",
       "at most " + std::to_string(most) + " bytes for this text",
       "Write csv, leave the column out, or pass --trust-sizes.");
}

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

// Integers where the file had integers, or where f64 would round the numbers of a text; else f64.
void add_number_times(NpzWriter& npz, std::set<std::string>& taken, const Recording& recording,
                      const WriteOptions& options) {
  const TimeColumn& time = recording.time;
  const std::vector<std::int64_t> shape{recording.rows()};
  TimeUnit unit = options.to_unit.value_or(time.form == TimeForm::number ? time.unit : TimeUnit::nanoseconds);
  const bool exact_text = recording.format != FileFormat::npz && recording.format != FileFormat::npy;
  bool integer = unit == TimeUnit::nanoseconds || time.integer;
  // Where a time lies between two whole units, all times become nanoseconds under a name that says so.
  if (integer && !options.to_unit && !whole_times(recording.times, unit)) unit = TimeUnit::nanoseconds;
  if (integer && options.to_unit && !whole_times(recording.times, unit)) integer = false;
  if (!integer && exact_text && !options.to_unit && !all_in_f64(recording, unit)) {
    unit = TimeUnit::nanoseconds;
    integer = true;
  }
  const bool as_read = integer == time.integer && unit == time.unit && time.form == TimeForm::number;
  std::string name = time.form == TimeForm::pair ? joined_time_name(time) : time.name;
  const TimeUnit assumed = unit_in_name(name).value_or(integer ? TimeUnit::nanoseconds : TimeUnit::seconds);
  const bool changed = unit != time.unit || time.form != TimeForm::number;
  // Nanoseconds that replace another unit are named, even where a reader would assume them.
  if (assumed != unit || (changed && integer && unit_in_name(name) != unit)) name = name_with_unit(name, unit);
  if (as_read && recording.format == FileFormat::npz) name = time.name;
  if (integer) {
    npz.add(member_name(name, taken), make_array(*whole_times(recording.times, unit), shape));
    return;
  }
  std::vector<double> real;
  real.reserve(recording.times.size());
  for (const std::int64_t timestamp : recording.times) real.push_back(time_to_f64(timestamp, unit));
  npz.add(member_name(name, taken), make_array(real, shape));
}

void add_times(NpzWriter& npz, std::set<std::string>& taken, const Recording& recording, const WriteOptions& options) {
  const TimeColumn& time = recording.time;
  if (options.to_unit || time.form == TimeForm::number) return add_number_times(npz, taken, recording, options);
  if (time.form != TimeForm::pair) return npz.add(member_name(time.name, taken), datetime_array(recording));
  std::vector<std::int64_t> seconds, nanoseconds;
  for (const std::int64_t time_of_row : recording.times) {
    seconds.push_back(split_seconds(time_of_row).seconds);
    nanoseconds.push_back(split_seconds(time_of_row).nanoseconds);
  }
  npz.add(member_name(time.name, taken), make_array(seconds, {recording.rows()}));
  npz.add(member_name(time.second_name, taken), make_array(nanoseconds, {recording.rows()}));
}

}  // namespace

void write_npz_recording(OutputFile& file, const Recording& recording, const WriteOptions& options) {
  if (!options.trust_sizes)
    for (const Column& column : recording.columns) check_text_size(recording, column);
  NpzWriter npz(file, options.deflate);
  std::set<std::string> taken;
  add_times(npz, taken, recording, options);
  for (const Column& column : recording.columns) npz.add(member_name(column.name, taken), column.data);
  if (!recording.offsets_name.empty())
    npz.add(member_name(recording.offsets_name, taken),
            make_array(recording.offsets, {static_cast<std::int64_t>(recording.offsets.size())}));
  for (const Column& column : recording.others) npz.add(member_name(column.name, taken), column.data);
  if (!recording.valid.empty()) {
    Array valid{*element_type("|b1"), {recording.rows()}, {}};
    auto data = allocate(recording.valid.size(), "the array valid");
    std::transform(recording.valid.begin(), recording.valid.end(), data.get(),
                   [](std::uint8_t value) { return value != 0 ? std::byte{1} : std::byte{0}; });
    valid.data = std::move(data);
    npz.add(member_name("valid", taken), valid);  // valid_2 when the input has a column of that name
  }
  npz.finish();
}

}  // namespace tmaops::io
