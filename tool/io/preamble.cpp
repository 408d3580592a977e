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

/// A line of markers, each above its coordinates X1 Y1 Z1.
void read_trc(const std::vector<std::string_view>& lines, Preamble& found) {
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::vector<std::string> markers = fields_of(lines[i], '\t');
    if (!markers[0].starts_with("Frame") || field_at(markers, 1) != "Time") continue;
    std::vector<std::string> coordinates = fields_of(lines[i + 1], '\t');
    while (!coordinates.empty() && coordinates.back().empty()) coordinates.pop_back();
    std::set<std::string> taken;
    std::string marker;
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      if (!field_at(markers, k).empty()) marker = markers[k];
      add_name(found.names, taken, {marker, coordinates[k].substr(0, 1)});
    }
    found.lines = static_cast<std::int64_t>(i) + 2;
    found.delimiter = '\t';
    return;
  }
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
  if (text.starts_with("Format Version,")) {
    found.recorder = "OptiTrack Motive";
    read_motive(lines, found);
  } else if (text.starts_with("PathFileType")) {
    found.recorder = "OpenSim (trc)";
    read_trc(lines, found);
  } else if (text.starts_with("//")) {
    found.recorder = "Xsens MT Manager";
    found.tick = 100'000;
    end_above(lines, [](std::string_view line) { return line.starts_with("PacketCounter"); }, found);
  } else if (text.starts_with("sep=") || text.starts_with("DeviceTag")) {
    found.recorder = "Movella DOT";
    found.tick = 1'000;
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
