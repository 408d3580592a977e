#include "io/preamble.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "core/spelling.hpp"
#include "io/names.hpp"
#include "io/table.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kMostLines = 200;  // that a recorder writes above its table

std::vector<std::string_view> first_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < kMostLines) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Fields without their blanks and quotes. These headers have no delimiter within quotes.
std::vector<std::string> fields_of(std::string_view line, char delimiter) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t end = line.find(delimiter);
    std::string_view field = trimmed(line.substr(0, end));
    if (field.size() > 1 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
    fields.emplace_back(field);
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::string field_at(const std::vector<std::string>& fields, std::size_t i) {
  return i < fields.size() ? fields[i] : "";
}

/// Names of their parts that are not empty, with dots between them: box.Rotation.X.
void add_name(std::vector<std::string>& names, std::set<std::string>& taken, std::initializer_list<std::string> parts) {
  std::string name;
  for (const std::string& part : parts)
    if (!part.empty()) name += (name.empty() ? "" : ".") + part;
  names.push_back(unique_name(name, taken));
}

/// Lines of kinds, names and parts of rigid bodies above "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z".
void read_motive(const std::vector<std::string_view>& lines, Preamble& found) {
  std::vector<std::string> bodies, parts;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = fields_of(lines[i], ',');
    if (fields[0] == "Frame") {
      std::set<std::string> taken;
      for (std::size_t k = 0; k < fields.size(); ++k)
        k < 2 ? add_name(found.names, taken, {fields[k]})
              : add_name(found.names, taken, {field_at(bodies, k), field_at(parts, k), fields[k]});
      found.lines = static_cast<std::int64_t>(i) + 1;
      found.delimiter = ',';
      return;
    }
    if (field_at(fields, 1) == "Name") bodies = fields;
    parts = fields;  // the last line above the header
  }
}

/// Names of a line of markers, each above the coordinates in the line below: X1 Y1 Z1, or X Y Z. Their first letters
/// are the names of those.
void read_markers(const std::vector<std::string_view>& lines, std::size_t at, char delimiter, Preamble& found) {
  const std::vector<std::string> markers = fields_of(lines[at], delimiter);
  std::vector<std::string> coordinates = fields_of(lines[at + 1], delimiter);
  while (!coordinates.empty() && coordinates.back().empty()) coordinates.pop_back();
  std::set<std::string> taken;
  std::string marker;
  for (std::size_t k = 0; k < coordinates.size(); ++k) {
    if (!field_at(markers, k).empty()) marker = markers[k];
    const std::string& name = coordinates[k];  // without the number of the marker
    add_name(found.names, taken, {marker, name.substr(0, name.find_last_not_of("0123456789") + 1)});
  }
  found.lines = static_cast<std::int64_t>(at) + 2;
  found.delimiter = delimiter;
}

/// Leaves out the lines above the header, which is the first line that fits.
template <class Fits>
void end_above(const std::vector<std::string_view>& lines, const Fits& fits, Preamble& found) {
  const auto header = std::ranges::find_if(lines, fits);
  if (header == lines.end()) return;
  found.lines = header - lines.begin();
  if (header->find('\t') != std::string_view::npos) found.delimiter = '\t';
  const std::string_view ticks = "SampleTimeFine";
  if (found.tick != 0 && header->find(ticks) != std::string_view::npos) found.time = ticks;
}

}  // namespace

Preamble find_preamble(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::vector<std::string_view> lines = first_lines(text);
  Preamble found;
  double rate = 0;  // per second
  if (text.starts_with("Format Version,")) {
    found.recorder = "OptiTrack Motive";
    read_motive(lines, found);
  } else if (text.starts_with("PathFileType")) {
    found.recorder = "OpenSim (trc)";
    for (std::size_t i = 1; i + 1 < lines.size() && found.lines == 0; ++i)
      if (lines[i].starts_with("Frame") && field_at(fields_of(lines[i], '\t'), 1) == "Time")
        read_markers(lines, i, '\t', found);
  } else if (lines.size() > 5 && lines[3].starts_with("Frame,Sub Frame") &&
             recording::parse_real(trimmed(lines[1].substr(0, lines[1].find(','))), rate) == ParseResult::good) {
    found.recorder = "Vicon Nexus";
    read_markers(lines, 2, ',', found);
    ++found.lines;  // of units
    found.time = "Frame";
    found.tick = 1e9 / rate;
  } else if (text.starts_with("//") || text.starts_with("sep=") || text.starts_with("DeviceTag")) {
    const bool xsens = text.starts_with("//");
    found.recorder = xsens ? "Xsens MT Manager" : "Movella DOT";
    found.tick = xsens ? 100'000 : 1'000;
    end_above(lines, [](std::string_view line) { return line.starts_with("PacketCounter"); }, found);
  } else {
    found.recorder = "OpenSim";
    bool ended = false;
    const auto below = [&](std::string_view line) {
      const bool header = ended && !trimmed(line).empty();
      ended = ended || lower_case(trimmed(line)) == "endheader";
      return header;
    };
    end_above(lines, std::ref(below), found);
  }
  if (found.lines != 0) return found;
  return text.starts_with("sep=") && lines[0].size() == 5 ? Preamble{"Excel", 1, text[4]} : Preamble{};
}

}  // namespace tmaops::io
