#include <algorithm>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {

ColumnRoles find_roles(const Recording& recording) {
  const ColumnView view{recording.columns};
  return {find_quaternions(view), find_positions(view)};
}

ColumnRoles carry_roles(const Recording& recording, const ColumnRoles& before, const std::vector<MovedChannel>& moved) {
  ColumnRoles roles = find_roles(recording);
  for (const auto& [old, now] :
       {std::pair{&before.quaternions, &roles.quaternions}, {&before.positions, &roles.positions}})
    for (NamedVector vector : *old) {
      bool there = true;
      vector.text.clear();
      for (ChannelReference& channel : vector.components) {
        const auto place = std::ranges::find(moved, channel, &MovedChannel::from);
        there = there && place != moved.end();
        if (!there) break;
        channel = place->to;
        vector.text += (vector.text.empty() ? "" : " ") + recording.columns[channel.column].name;
      }
      const bool known =
          there && std::ranges::any_of(*now, [&](const NamedVector& other) {
            return std::ranges::find_first_of(other.components, vector.components) != other.components.end();
          });
      if (there && !known) now->push_back(std::move(vector));
    }
  return roles;
}

void Selector::fail(std::string got, std::string needed) const {
  tmaops::fail(ErrorCode::usage, display_text(option_), got, needed);
}

std::optional<std::size_t> Selector::find(const std::string& name) const {
  std::optional<std::size_t> without_unit;
  for (std::size_t i = 0; i < recording_.columns.size(); ++i) {
    if (recording_.columns[i].name == name) return i;
    if (!name.empty() && name_without_unit(recording_.columns[i].name) == name) {
      if (without_unit) return {};  // two columns that differ in their unit only
      without_unit = i;
    }
  }
  return without_unit;
}

std::vector<ChannelReference> Selector::all_channels(std::size_t column) const {
  std::vector<ChannelReference> all;
  for (std::int64_t k = 0; k < recording_.columns[column].width(); ++k) all.push_back({column, k});
  return all;
}

bool Selector::is_slice(const std::string& text) const {
  const std::size_t bracket = text.rfind('[');
  return !find(text) && text.ends_with(']') && bracket != std::string::npos && find(text.substr(0, bracket));
}

std::vector<ChannelReference> Selector::select(const std::string& text) const {
  if (const auto column = find(text)) return all_channels(*column);
  for (const auto& [alias, vectors] :
       {std::pair{"position", &roles_.positions}, std::pair{"quaternion", &roles_.quaternions}}) {
    if (text != alias || vectors->empty()) continue;
    std::vector<ChannelReference> all;
    for (const NamedVector& vector : *vectors)
      all.insert(all.end(), vector.components.begin(), vector.components.end());
    return all;
  }
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const auto first = find_or_number(text.substr(0, dots));
    const auto last = find_or_number(text.substr(dots + 2));
    if (first && last && *first <= *last) {
      std::vector<ChannelReference> all;
      for (std::size_t i = *first; i <= *last; ++i)
        for (const ChannelReference& channel : all_channels(i)) all.push_back(channel);
      return all;
    }
  }
  if (is_slice(text)) {
    const std::size_t bracket = text.rfind('[');
    return slice(*find(text.substr(0, bracket)), text.substr(bracket + 1, text.size() - bracket - 2));
  }
  if (const auto column = find_or_number(text)) return all_channels(*column);
  const auto name = [](const Column& column) { return display_text(column.name); };
  fail("no columns '" + display_text(text) + "'", "one of: " + joined(recording_.columns, ", ", name));
}

std::optional<std::size_t> Selector::find_or_number(const std::string& text) const {
  if (const auto column = find(text)) return column;
  const auto number = parse_integer(text);
  if (!numbers_ || recording_.lines.empty() || !number || *number < 1) return {};
  // Numbers count the columns of the file; its time columns are not among the recording's.
  const auto position = static_cast<std::size_t>(*number - 1);
  for (std::size_t i = 0; i < recording_.columns.size(); ++i)
    if (recording_.columns[i].position == position) return i;
  const TimeColumn& time = recording_.time;
  if (position == time.position || (!time.second_name.empty() && position == time.second_position))
    fail("the time column", "columns of values");
  return {};
}

std::vector<ChannelReference> Selector::slice(std::size_t column, const std::string& text) const {
  const std::int64_t width = recording_.columns[column].width();
  const std::size_t colon = text.find(':');
  const std::string from = text.substr(0, colon), to = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::optional<std::int64_t> first = parse_integer(from), last = parse_integer(to);
  if (colon == std::string::npos && first) last = *first + 1;
  if (colon != std::string::npos && from.empty()) first = 0;
  if (colon != std::string::npos && to.empty()) last = width;
  if (!first || !last || *first < 0 || *last > width || *first >= *last)
    fail("channels [" + display_text(text) + "] of '" + display_text(recording_.columns[column].name) + "'",
         "[a:b] within 0:" + std::to_string(width));
  const std::vector<ChannelReference> all = all_channels(column);
  return {all.begin() + *first, all.begin() + *last};
}

}  // namespace tmaops::recording
