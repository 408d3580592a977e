// Reading recordings from text: csv tables, and TUM trajectories (`timestamp tx ty tz qx qy qz qw`, seconds, metres).
#include <algorithm>
#include <set>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "io/preamble.hpp"
#include "io/recording.hpp"
#include "io/table.hpp"
#include "io/trajectory.hpp"

namespace tmaops::io {
namespace {

/// Names of columns that number the rows: none at all (the index of a pandas frame), index, frame, seq, step.
bool counts_rows(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kCounters{
      "", "index", "idx", "row", "id", "seq", "frame", "frames", "frame_index", "frame_id", "step", "unnamed: 0"};
  const std::string lower = lower_case(name);
  return std::ranges::find(kCounters, lower) != kCounters.end();
}

/// True where the first column has 0, 1, 2, ... or 1, 2, 3, ...
bool numbers_rows(const Table& table) {
  const std::int64_t first = table.rows() > 1 ? parse_integer(table.at(0, 0).text).value_or(-1) : -1;
  bool numbers = first == 0 || first == 1;
  for (std::size_t row = 0; numbers && row < table.rows(); ++row)
    numbers = parse_integer(table.at(row, 0).text) == first + static_cast<std::int64_t>(row);
  return numbers;
}

ChosenTimes find_times(Recording& recording, const Table& table, const ReadOptions& options) {
  const auto array = [&](std::size_t column) { return table_column(table, column).data; };
  if (const auto chosen = choose_times(recording, table.names, options.times(), array)) return *chosen;
  if (const auto like = choose_like_times(recording, table.names, options.times(), array)) return *like;
  if (options.times_name.empty()) {
    if (table.names.empty()) return {};
    recording.time.name = table.names[0];
    for (const std::size_t i : names_like_times(table.names))
      if (i != 0) recording.other_time_names.push_back(table.names[i]);
    if (counts_rows(table.names[0]) && numbers_rows(table))
      recording.warnings.push_back(
          {"index_as_time", recording.where + ": column '" + display_text(table.names[0]) +
                                "' counts the rows and was taken as the times, since no other column is named like "
                                "times and rises (--times-array names them)"});
    return {};
  }
  const auto number = parse_integer(options.times_name);
  if (number && *number >= 1 && *number <= static_cast<std::int64_t>(table.columns)) {
    const auto index = static_cast<std::size_t>(*number - 1);
    recording.time.choice = TimeChoice::option;
    if (!table.names.empty()) recording.time.name = table.names[index];
    return {index, {}};
  }
  fail(ErrorCode::array_missing, table.where, "no column '" + display_text(options.times_name) + "'",
       (table.names.empty() ? "" : "one of " + joined(table.names, ", ", display_text) + ", or ") +
           "a number from 1 to " + std::to_string(table.columns));
}

void parse_times(Recording& recording, const Table& table, const ChosenTimes& chosen, const ReadOptions& options) {
  const auto at = [](std::int64_t row) { return static_cast<std::size_t>(row); };
  Array texts = text_of(table, chosen.index);
  if (chosen.second) texts = joined_texts(text_of(table, *chosen.second), texts);
  recording.times = recording::text_times(
      texts, [&](std::int64_t row) { return table.place(at(row), chosen.index); },
      [&](std::int64_t row, const std::string& needed) { fail_field(table, at(row), chosen.index, needed); },
      options.times(), table.names.empty() ? "" : table.names[chosen.index], recording.time,
      recording.format == FileFormat::tum);
  if (!counts_rows(recording.time.name)) warn_of_times(recording, options.times());  // that has a warning of its own
}

// A comment that names the times is a header. One with as many words as there are columns, of which one stands twice,
// is a sentence.
void check_names(Table& table) {
  std::set<std::string> seen;
  for (std::string& name : table.names) {
    const std::string given = name;
    if (!name.empty()) name = unique_name(given, seen);
    if (name == given) continue;
    if (table.names_in_comment && find_time_names(table.names).empty()) {
      table.names_in_comment = false;
      return table.names.clear();
    }
    table.warnings.push_back({"name_repeated", table.where + ": the name '" + display_text(given) +
                                                   "' stands twice and became '" + display_text(name) + "'"});
  }
}

// "#" and the blanks behind it.
std::string start_of_comment(const std::string& comment) {
  const std::size_t hash = comment.find('#');
  const std::size_t name = comment.find_first_not_of(" \t", hash + 1);
  return comment.substr(hash, std::min(name, comment.size()) - hash);
}

void add_column(Recording& recording, const Table& table, std::size_t index) {
  TableColumn from = table_column(table, index);
  Column column{table.names.empty() ? "column_" + std::to_string(index + 1) : table.names[index], std::move(from.data)};
  column.from_text = true;
  column.position = index;
  column.missing = from.missing;
  column.numeric_fields = from.numeric_fields;
  column.first_other = std::move(from.first_other);
  const std::string start = recording.where + ": column '" + display_text(column.name) + "': ";
  if (from.whole_with_missing)
    recording.warnings.push_back({"whole_with_missing", start + "whole numbers were read as real ones, because " +
                                                            std::to_string(from.missing) + " of " +
                                                            std::to_string(recording.rows()) + " have no value"});
  if (from.not_utf8 != 0)
    recording.warnings.push_back(
        {"text_not_utf8", start + std::to_string(from.not_utf8) + " texts are not UTF-8; their bytes become U+FFFD"});
  recording.columns.push_back(std::move(column));
}

}  // namespace

Recording parse_text_recording(std::string_view text, const std::string& where, FileFormat format,
                               const ReadOptions& given) {
  ReadOptions options = given;
  const Preamble above = options.skip_lines == 0 ? find_preamble(text) : Preamble{};
  if (!above.recorder.empty()) {
    format = FileFormat::csv;
    options.skip_lines = above.lines;
    if (options.times_name.empty()) options.times_name = above.time;
  }
  const bool tum = format == FileFormat::tum;
  if (text.empty()) fail(ErrorCode::bad_format, where, "an empty file", tum ? "a TUM trajectory" : "a csv table");
  TableOptions table_options{.delimiter = above.delimiter, .tabs = options.tab_separated, .names = above.names};
  if (tum) table_options = {.delimiter = ' ', .header = false, .columns = kTumColumns.size(), .trajectory = true};
  table_options.skip_lines = options.skip_lines;
  Table table = parse_table(text, where, table_options);
  Recording recording;
  recording.where = where;
  recording.format = format;
  recording.delimiter = tum ? ',' : table.delimiter;
  recording.lines = table.lines;
  if (tum) {
    if (!table.names.empty()) recording.header_comment = table.comment;
    table.names.clear();  // its columns have names of their own
  }
  if (table.columns == 0) fail(ErrorCode::empty_trajectory, where, "no line of data", "at least one row");
  check_names(table);
  recording.notes = std::move(table.notes);
  recording.warnings = std::move(table.warnings);
  recording.named = tum || !table.names.empty();
  if (table.names_in_comment && !tum) recording.header_comment = start_of_comment(table.comment);
  recording.times.resize(table.rows());
  ChosenTimes chosen;
  if (tum) {
    recording.time.choice = TimeChoice::format;
  } else {
    chosen = find_times(recording, table, options);
  }
  recording.time.position = chosen.index;
  if (options.times_name == above.time && !above.time.empty()) recording.time.choice = TimeChoice::format;
  if (!above.recorder.empty())
    recording.notes.push_back({"lines_skipped", std::to_string(above.lines) + " lines above the " +
                                                    (above.names.empty() ? "header" : "data") + " are those of " +
                                                    std::string(above.recorder)});
  if (chosen.second) recording.time.second_position = *chosen.second;
  const bool ticks = above.tick != 0 && !options.unit && recording.time.name == above.time;
  if (ticks) options.unit = TimeUnit::microseconds;
  const bool pair = recording.time.form == TimeForm::pair;
  for (std::size_t i = 0; pair && i < 2 * table.rows(); ++i)
    if (const std::size_t column = i % 2 == 0 ? chosen.index : *chosen.second;
        !parse_integer(table.at(i / 2, column).text))
      fail_field(table, i / 2, column, "whole seconds, and whole fractions of them beside");
  if (pair)
    recording.times = pair_times(recording, table_column(table, chosen.index).data,
                                 table_column(table, *chosen.second).data, recording.where);
  else
    parse_times(recording, table, chosen, options);
  for (std::int64_t& time : recording.times)  // ticks are said, and written, in microseconds
    if (const double count = static_cast<double>(time) / 1000;
        ticks && time_from_f64(count * above.tick, TimeUnit::nanoseconds, time) != ParseResult::good)
      fail(ErrorCode::time_overflow, table.where, "ticks beyond 64 bits of nanoseconds", "fewer");
  if (ticks) recording.time.unit_source = UnitSource::format;
  if (ticks) recording.time.name = name_with_unit(recording.time.name, recording.time.unit);
  if (tum) {
    const bool dates = recording.time.unit_source == UnitSource::dates && recording.time.unit == TimeUnit::seconds;
    recording.time.integer = false;
    recording.time.unit = TimeUnit::seconds;
    recording.time.form = TimeForm::number;
    if (dates || recording.time.unit_source == UnitSource::usual) recording.time.unit_source = UnitSource::format;
  }
  if (options.only_times) return recording;
  for (std::size_t i = 0; i < table.columns; ++i) {
    if (i == chosen.index || i == chosen.second) continue;
    if (tum)
      add_tum_column(recording, i, make_array(column_reals(table, i), {recording.rows()}));
    else
      add_column(recording, table, i);
  }
  return recording;
}

}  // namespace tmaops::io
