#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "recording/steps.hpp"
#include "recording/times.hpp"

namespace tmaops::recording {
namespace {

/// Keeps these rows in this order. The caller sets the offsets.
void take_rows_of(Recording& recording, const std::vector<std::int64_t>& rows) {
  for (Column& column : recording.columns) column.data = take_rows(column.data, rows, "column '" + column.name + "'");
  for (std::vector<std::int64_t>* each : {&recording.times, &recording.lines}) {
    if (each->empty()) continue;
    std::vector<std::int64_t> taken;
    taken.reserve(rows.size());
    for (const std::int64_t row : rows) taken.push_back((*each)[static_cast<std::size_t>(row)]);
    *each = std::move(taken);
  }
}

/// How to mend a counter, or a time of the day or week, that begins again with a row; empty where none does.
std::string wrap_hint(const Recording& recording, std::int64_t row) {
  const __int128 before = recording.times[static_cast<std::size_t>(row - 1)];
  const __int128 now = recording.times[static_cast<std::size_t>(row)];
  const __int128 unit = nanoseconds_of(recording.time.unit);
  const TimeColumn& time = recording.time;
  constexpr __int128 kHour = 3600 * kSecond, kStep = 60 * kSecond;
  if (time.form == TimeForm::iso8601 && time.iso.zone.empty() && before - now < kHour && before - now > kHour - kStep)
    return "The clock goes back an hour here, as where summer time ends: write times in UTC, or with their zone.";
  constexpr int kTick = 100;  // of Xsens, in us
  for (const __int128 turn : {unit << 16, unit << 24, unit << 32, kTick * unit << 32, __int128{86'400} * kSecond,
                              __int128{604'800} * kSecond}) {
    const __int128 step = now + turn - before;
    if (now >= 0 && now < turn / 100 && step > 0 && step < turn / 100)
      return "The clock begins again here: add " + seconds_text(static_cast<std::int64_t>(turn)) +
             " to the times from this row on.";
  }
  return "";
}

/// Sorts the rows of each episode by time; rows with equal times keep their order. Returns how many moved: none where a
/// clock begins again, which check_order() refuses.
std::int64_t sort_rows(Recording& recording) {
  for (std::int64_t row = 1; row < recording.rows(); ++row)
    if (!std::ranges::binary_search(recording.offsets, row) && !wrap_hint(recording, row).empty()) return 0;
  std::vector<std::int64_t> rows(recording.times.size());
  std::iota(rows.begin(), rows.end(), 0);
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    std::ranges::stable_sort(rows.begin() + recording.offsets[e], rows.begin() + recording.offsets[e + 1], {},
                             [&](std::int64_t row) { return recording.times[static_cast<std::size_t>(row)]; });
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) moved += rows[i] != static_cast<std::int64_t>(i);
  if (moved != 0) take_rows_of(recording, rows);
  return moved;
}

/// Makes an episode of the rows of each value of a column. Episodes have the order of their first rows.
void group_rows(Recording& recording, const std::string& name) {
  const auto refuse = [&](const std::string& got, const std::string& needed) {
    fail(ErrorCode::usage, "--group " + display_text(name), got, needed);
  };
  if (recording.offsets.size() > 2)
    refuse("a recording of " + std::to_string(recording.offsets.size() - 1) + " episodes", "one without offsets");
  const auto column = std::ranges::find(recording.columns, name, &Column::name);
  if (column == recording.columns.end())
    refuse("no such column",
           "one of " + joined(recording.columns, ", ", [](const Column& each) { return display_text(each.name); }));
  const Array values = column->data;
  const ElementKind kind = values.type.kind;
  if (column->width() != 1 ||
      (kind != ElementKind::text && kind != ElementKind::integer && kind != ElementKind::boolean))
    refuse(values.text(), "a column of text, whole numbers or booleans");
  column->group = true;
  std::vector<std::vector<std::int64_t>> episodes;
  for (std::int64_t row = 0; const std::size_t episode : number_values(values, recording.rows())) {
    if (episode == episodes.size()) episodes.emplace_back();
    episodes[episode].push_back(row++);
  }
  std::vector<std::int64_t> rows;
  recording.offsets = {0};
  for (const std::vector<std::int64_t>& episode : episodes) {
    rows.insert(rows.end(), episode.begin(), episode.end());
    recording.offsets.push_back(static_cast<std::int64_t>(rows.size()));
  }
  take_rows_of(recording, rows);
}

/// Removes the rows that have no data according to the mask.
void drop_masked_rows(Recording& recording, Input& input) {
  const auto mask = find_valid_mask({recording.columns});
  if (!mask) return;
  input.has_mask = true;
  const Array valid = recording.columns[*mask].data;
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> offsets{0};
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e) {
    for (std::int64_t row = recording.offsets[e]; row < recording.offsets[e + 1]; ++row) {
      if (!mask_value(valid, row)) {
        ++input.missing.count;
        continue;
      }
      kept.push_back(row);
      input.missing.before.push_back(input.missing.count);
    }
    offsets.push_back(static_cast<std::int64_t>(kept.size()));
  }
  if (input.missing.count == 0) {
    input.missing.before.clear();
    return;
  }
  if (kept.empty())
    fail(ErrorCode::empty_trajectory, recording.where, "no row whose 'valid' is 1", "at least one sample with data");
  take_rows_of(recording, kept);
  recording.offsets = std::move(offsets);
}

/// An array of some channels of a column; one channel becomes an array of one dimension.
Array take_channels(const Column& column, const std::vector<ChannelReference>& channels, bool one) {
  if (column.width() == 1 && one) return column.data;
  Array to{column.data.type, {column.data.shape[0]}, {}};
  if (!one) to.shape.push_back(static_cast<std::int64_t>(channels.size()));
  auto data = allocate(to.bytes(), "column '" + column.name + "'");
  const std::size_t item = to.type.bytes;
  std::size_t at = 0;
  for (std::int64_t row = 0; row < column.data.shape[0]; ++row)
    for (const ChannelReference& channel : channels) {
      const auto from = static_cast<std::size_t>(row * column.width() + channel.channel);
      std::memcpy(data.get() + item * at++, column.data.data.get() + item * from, item);
    }
  to.data = std::move(data);
  return to;
}

/// Keeps and renames columns. `list` has SELECTOR, NEW=SELECTOR, and * for all other columns, separated by commas.
/// Returns the new places of the channels.
std::vector<MovedChannel> select_columns(Recording& recording, const ColumnRoles& roles, const std::string& list) {
  const Selector selector(recording, roles, "--columns " + list);
  std::vector<Column> columns, others;
  std::vector<std::vector<ChannelReference>> sources;  // of each of them
  std::set<std::size_t> used;
  std::optional<std::size_t> rest;  // where the columns of * go
  TimeColumn time = recording.time;
  time.position = 0;
  for (const std::string& part : split_list(list)) {
    const std::size_t equals = part.find('=');
    const std::string name = equals == std::string::npos ? "" : part.substr(0, equals);
    const std::string text = equals == std::string::npos ? part : part.substr(equals + 1);
    if (equals != std::string::npos && name.empty()) selector.fail("an empty name", "NEW=COLUMN");
    if (text == "*" && name.empty()) {
      if (rest) selector.fail("* twice", "one *, for all other columns");
      rest = columns.size();
      continue;
    }
    if (!selector.find(text) && (text == recording.time.name || text == name_without_unit(recording.time.name))) {
      time.position = columns.size();
      if (!name.empty()) time.name = name;
      continue;
    }
    const auto other = std::ranges::find(recording.others, text, &Column::name);
    if (other != recording.others.end()) {
      others.push_back(*other);
      if (!name.empty()) others.back().name = name;
      continue;
    }
    const std::vector<ChannelReference> channels = selector.select(text);
    const bool slice = selector.is_slice(text);
    for (std::size_t i = 0; i < channels.size();) {
      const std::size_t c = channels[i].column;
      Column column = recording.columns[c];
      const auto width = slice ? channels.size() : static_cast<std::size_t>(column.width());
      if (!name.empty() && i + width < channels.size()) selector.fail("one name for several columns", "one for each");
      if (slice) {
        column.data = take_channels(column, channels, text.find(':', text.rfind('[')) == std::string::npos);
        column.name += "_" + std::to_string(channels[0].channel);
      }
      if (!name.empty()) column.name = name;
      used.insert(c);
      columns.push_back(std::move(column));
      sources.push_back(slice ? channels : selector.all_channels(c));
      i += std::max<std::size_t>(width, 1);
    }
  }
  if (rest) {
    std::size_t at = *rest;
    for (std::size_t c = 0; c < recording.columns.size(); ++c) {
      if (used.contains(c)) continue;
      columns.insert(columns.begin() + static_cast<std::ptrdiff_t>(at), recording.columns[c]);
      sources.insert(sources.begin() + static_cast<std::ptrdiff_t>(at++), selector.all_channels(c));
    }
    if (time.position > *rest) time.position += at - *rest;
  }
  std::set<std::string> names{time.name};
  for (const auto* each : {&columns, &others})
    for (const Column& column : *each)
      if (!names.insert(column.name).second)
        selector.fail("two columns named '" + display_text(column.name) + "'", "different names");
  recording.columns = std::move(columns);
  recording.others = std::move(others);
  time.second_position = time.position + 1;  // of a pair
  recording.time = time;
  std::vector<MovedChannel> moved;
  for (std::size_t c = 0; c < sources.size(); ++c)
    for (std::size_t k = 0; k < sources[c].size(); ++k)
      moved.push_back({sources[c][k], {c, static_cast<std::int64_t>(k)}});
  return moved;
}

/// How to tell objects apart whose rows alternate: a column of text or whole numbers that has other values in two
/// neighbouring rows, and each of them in other rows too.
std::string group_hint(const Recording& recording, std::int64_t row) {
  for (const Column& column : recording.columns) {
    const ElementKind kind = column.data.type.kind;
    if (column.width() != 1 || kind == ElementKind::real || kind == ElementKind::boolean || kind == ElementKind::time)
      continue;
    const std::vector<std::size_t> values = number_values(column.data, recording.rows());
    const auto at = values.begin() + row;
    if (at[0] != at[-1] && std::ranges::count(values, at[0]) > 1 && std::ranges::count(values, at[-1]) > 1)
      return "If the rows of each value of '" + display_text(column.name) + "' belong together, pass --group '" +
             display_text(column.name) + "'.";
  }
  return "";
}

}  // namespace

std::vector<std::size_t> number_values(const Array& array, std::int64_t rows) {
  const bool text = array.type.kind == ElementKind::text;
  std::map<std::string, std::size_t> places;
  std::vector<std::size_t> numbers;
  for (std::int64_t row = 0; row < rows; ++row)
    numbers.push_back(
        places.emplace(text ? element_text(array, row) : element_digits(array, row), places.size()).first->second);
  return numbers;
}

void check_order(const Recording& recording, bool allow_duplicates) {
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      const std::int64_t before = recording.times[static_cast<std::size_t>(row - 1)];
      const std::int64_t now = recording.times[static_cast<std::size_t>(row)];
      if (now < before) {
        std::string hint = wrap_hint(recording, row);
        if (hint.empty()) hint = group_hint(recording, row);
        fail(ErrorCode::times_not_sorted, recording.place(row), seconds_text(now) + " after " + seconds_text(before),
             "times that increase from row to row",
             !hint.empty() ? hint : "Sort the samples with --sort, or cut the recording where its clock jumped back.");
      }
      if (now == before && !allow_duplicates) {
        const bool guessed = recording.time.choice == TimeChoice::position;
        const std::string hint = guessed ? "The first column was taken for the times: --times-array names another."
                                         : group_hint(recording, row);
        fail(ErrorCode::duplicate_times, recording.place(row), "twice " + seconds_text(now), "different times",
             !hint.empty() ? hint : "Remove one of the two, or pass --duplicates last: the later sample then wins.");
      }
    }
}

Input prepare(Recording& recording, const Options& options, const ColumnRoles* roles) {
  Input input;
  input.rows = recording.rows();
  if (input.rows == 0) fail(ErrorCode::empty_trajectory, recording.where, "no samples", "at least one sample");
  if (!options.group.empty()) group_rows(recording, options.group);
  if (options.sort) input.moved = sort_rows(recording);
  drop_masked_rows(recording, input);
  // The output has a mask of its own. --columns may keep this one as data, under another name.
  const auto drop_mask = [&] {
    if (input.has_mask) std::erase_if(recording.columns, [](const Column& each) { return each.name == "valid"; });
  };
  if (options.columns.empty()) drop_mask();
  input.given = roles != nullptr ? *roles : find_roles(recording);
  if (options.columns.empty()) {
    input.roles = input.given;
  } else {
    const std::vector<MovedChannel> moved = select_columns(recording, input.given, options.columns);
    input.roles = carry_roles(recording, input.given, moved);
    drop_mask();
  }
  return input;
}

}  // namespace tmaops::recording
