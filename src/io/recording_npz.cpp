// Recordings in npz archives: a times array, arrays with a row per time, and whatever else is in there.
#include <algorithm>
#include <set>

#include "io/file_error.hpp"
#include "io/input_file.hpp"
#include "io/npz.hpp"
#include "io/recording.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

std::string times_name(const NpzReader& npz, const std::string& where, const ReadOptions& options) {
  if (!options.times_name.empty()) return options.times_name;
  const std::vector<std::string> names = npz.names();
  if (const auto index = find_time_name(names)) return names[*index];
  if (options.only_times && names.size() == 1) return names[0];
  std::string there;
  for (const std::string& name : names) there += (there.empty() ? "" : ", ") + display_text(name);
  throw Error(ErrorCode::array_missing, {.where = where,
                                         .got = there.empty() ? "no arrays" : "arrays " + there,
                                         .needed = "an array named timestamp, timestamps, time, times, t or stamps",
                                         .mend = "Name the array of times with " + options.times_option + "."});
}

std::vector<std::int64_t> read_offsets(const Array& array, const std::string& where, std::int64_t rows) {
  const auto fail = [&](std::string got) {
    throw Error(ErrorCode::bad_offsets, {.where = where,
                                         .got = std::move(got),
                                         .needed = "row numbers from 0 to " + std::to_string(rows) +
                                                   " that never decrease, one more than there are episodes"});
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

// A name that every reader takes: no absolute or escaping path, and none twice.
std::string member_name(std::string name, std::set<std::string>& taken) {
  if (name.empty()) name = "column";
  for (char& c : name)
    if (c == '\\' || c == '\0' || c == ':') c = '_';
  if (name[0] == '/') name[0] = '_';
  for (std::size_t at = name.find(".."); at != std::string::npos; at = name.find("..", at + 1)) name[at] = '_';
  return unique_name(name, taken);
}

}  // namespace

Recording parse_npz_recording(const Bytes& file, const std::string& where, const ReadOptions& options) {
  const NpzReader npz(file, where);
  Recording recording;
  recording.where = where;
  recording.format = FileFormat::npz;
  recording.time.name = times_name(npz, where, options);
  const std::string times_where = where + ": array '" + display_text(recording.time.name) + "'";
  recording.times =
      array_times(npz.read(recording.time.name), times_where, options, recording.time.name, recording.time);

  recording.offsets_name = options.offsets_name;
  for (const std::string_view usual : {"offsets", "episode_offsets"})
    if (recording.offsets_name.empty() && npz.has(usual)) recording.offsets_name = usual;
  if (!recording.offsets_name.empty())
    recording.offsets =
        read_offsets(npz.read(recording.offsets_name), where + ": array '" + display_text(recording.offsets_name) + "'",
                     recording.rows());

  for (const std::string& name : npz.names()) {
    if (name == recording.time.name || name == recording.offsets_name) continue;
    Column column{name, npz.read(name)};
    const bool has_rows = !column.data.shape.empty() && column.data.shape[0] == recording.rows();
    (has_rows ? recording.columns : recording.others).push_back(std::move(column));
  }
  return recording;
}

void write_npz_recording(OutputFile& file, const Recording& recording, bool deflate) {
  NpzWriter npz(file, deflate);
  std::set<std::string> taken;
  const auto rows = static_cast<std::int64_t>(recording.times.size());
  if (recording.time.integer) {
    std::vector<std::int64_t> whole;
    std::int64_t scale = 1;
    for (int digits = digits_to_nanoseconds(recording.time.unit); digits > 0; --digits) scale *= 10;
    // A grid point between two whole units has no place in this unit: all times then are nanoseconds under a name
    // that says so.
    const bool fits = std::all_of(recording.times.begin(), recording.times.end(),
                                  [&](std::int64_t time) { return time % scale == 0; });
    for (const std::int64_t time : recording.times) whole.push_back(fits ? time / scale : time);
    const std::string name =
        fits ? written_time_name(recording, FileFormat::npz, recording.time.unit) : recording.time.name + "_ns";
    npz.add(member_name(name, taken), make_array(whole, {rows}));
  } else {
    std::vector<double> real;
    real.reserve(recording.times.size());
    for (const std::int64_t time : recording.times) real.push_back(time_to_f64(time, recording.time.unit));
    npz.add(member_name(written_time_name(recording, FileFormat::npz, recording.time.unit), taken),
            make_array(real, {rows}));
  }
  for (const Column& column : recording.columns) npz.add(member_name(column.name, taken), column.data);
  if (!recording.offsets_name.empty())
    npz.add(member_name(recording.offsets_name, taken),
            make_array(recording.offsets, {static_cast<std::int64_t>(recording.offsets.size())}));
  for (const Column& column : recording.others) npz.add(member_name(column.name, taken), column.data);
  if (!recording.valid.empty()) {
    Array valid{*element_type("|b1"), {rows}, {}};
    auto data = allocate(recording.valid.size(), "the array valid");
    std::transform(recording.valid.begin(), recording.valid.end(), data.get(),
                   [](std::uint8_t value) { return value != 0 ? std::byte{1} : std::byte{0}; });
    valid.data = std::move(data);
    npz.add(member_name("valid", taken), valid);  // valid_2 when the input has a column of that name
  }
  npz.finish();
}

}  // namespace tmaops::io
