// Recordings in npz archives: an array of times, arrays with a row per time, and other arrays.
#include <algorithm>
#include <set>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "io/npz.hpp"
#include "io/recording.hpp"
#include "offers/input_file.hpp"

namespace tmaops::io {
namespace {

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
  std::vector<std::string> names = npz.names();
  if (options.only_times) {  // the other arrays are not read
    const ChosenTimes chosen =
        find_array_times(recording, names, options.times(), [&](std::size_t i) { return npz.read(names[i]); });
    names = chosen.second ? std::vector{names[chosen.index], names[*chosen.second]} : std::vector{names[chosen.index]};
  }
  std::vector<Column> arrays;
  for (const std::string& name : names) arrays.push_back({name, npz.read(name)});
  static_cast<recording::Recording&>(recording) =
      from_arrays(std::move(arrays), where, options.times(), options.only_times ? "" : options.offsets_name);
  recording.format = FileFormat::npz;
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

}  // namespace

void write_npz_recording(OutputFile& file, const Recording& recording, const WriteOptions& options) {
  if (!options.trust_sizes)
    for (const Column& column : recording.columns) check_text_size(recording, column);
  NpzWriter npz(file, options.deflate);
  std::set<std::string> taken;
  const bool decimal = recording.format != FileFormat::npz && recording.format != FileFormat::npy;
  for (const Column& array : to_arrays(recording, options.to_unit, decimal))
    npz.add(member_name(array.name, taken), array.data);
  npz.finish();
}

}  // namespace tmaops::io
