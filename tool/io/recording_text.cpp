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

constexpr std::string_view kTimeRange = "a time within 292 years of 0, the range of int64 nanoseconds";

/// True where the first column begins with what can be no time, as names of rows do.
bool names_rows(const Table& table) {
  double number = 0;
  return table.rows() != 0 && parse_real(table.at(0, 0).text, number) == ParseResult::not_a_number &&
         !looks_like_date(table.at(0, 0).text);
}

/// True where the first column has 0, 1, 2, ... or 1, 2, 3, ...
bool numbers_rows(const Table& table) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = parse_integer(table.at(row, 0).text);
    const auto first = parse_integer(table.at(0, 0).text);
    if (!number || (*first != 0 && *first != 1) || *number != *first + static_cast<std::int64_t>(row)) return false;
  }
  return table.rows() > 1;
}

ChosenTimes find_times(Recording& recording, const Table& table, const ReadOptions& options) {
  const auto range = [&](std::size_t column) { return whole_range(table_column(table, column).data); };
  if (const auto chosen = choose_times(recording, table.names, options.times(), range)) return *chosen;
  if (options.times_name.empty()) {
    if (table.names.empty()) return {};
    const std::vector<std::size_t> like = names_like_times(table.names);
    const bool index = counts_rows(table.names[0]) && numbers_rows(table);
    const bool passed_over = !like.empty() && (index || (like[0] != 0 && names_rows(table)));
    const std::size_t chosen = passed_over ? like[0] : 0;
    recording.time.name = table.names[chosen];
    for (const std::size_t i : like)
      if (i != chosen) recording.other_time_names.push_back(table.names[i]);
    if (index || passed_over)
      recording.warnings.push_back(
          {chosen == 0 ? "index_as_time" : "index_not_time",
           recording.where + ": column '" + display_text(table.names[0]) +
               (index ? "' counts the rows " : "' has names of rows ") +
               (chosen == 0 ? "and was taken as the times, since no other column is named like times (--times-array "
                              "names them)"
                            : "and was not taken as the times; '" + display_text(table.names[chosen]) + "' was")});
    return {chosen, {}};
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

void parse_times(Recording& recording, const Table& table, std::size_t column, const ReadOptions& options) {
  const auto at = [](std::int64_t row) { return static_cast<std::size_t>(row); };
  recording.times = recording::text_times(
      {.rows = static_cast<std::int64_t>(table.rows()),
       .text = [&](std::int64_t row) { return std::string_view(table.at(at(row), column).text); },
       .place = [&](std::int64_t row) { return table.place(at(row), column); },
       .refuse = [&](std::int64_t row, const std::string& needed) { fail_field(table, at(row), column, needed); },
       .real = recording.format == FileFormat::tum},
      options.times(), table.names.empty() ? "" : table.names[column], recording.time);
  if (!counts_rows(recording.time.name)) warn_of_times(recording, options.times());  // that has a warning of its own
}

// Whole numbers of a tick that has no unit. They are said, and written, in microseconds.
void parse_ticks(Recording& recording, const Table& table, std::size_t column, std::int64_t tick) {
  for (std::size_t row = 0; row < recording.times.size(); ++row) {
    const auto number = parse_integer(table.at(row, column).text);
    if (!number) fail_field(table, row, column, "a whole number");
    if (__builtin_mul_overflow(*number, tick, &recording.times[row]))
      fail(ErrorCode::time_overflow, table.place(row, column), display_text(table.at(row, column).text), kTimeRange);
  }
  recording.time.integer = true;
  recording.time.unit = TimeUnit::microseconds;
  recording.time.unit_source = UnitSource::format;
  recording.time.name = name_with_unit(recording.time.name, recording.time.unit);
}

void parse_pair_times(Recording& recording, const Table& table, const ChosenTimes& chosen) {
  const auto whole = [&](std::size_t column) {
    for (std::size_t row = 0; row < table.rows(); ++row)
      if (!parse_integer(table.at(row, column).text))
        fail_field(table, row, column, "whole seconds, and whole fractions of them beside");
    return table_column(table, column).data;
  };
  recording.times = pair_times(recording, whole(chosen.index), whole(*chosen.second), recording.where);
}

// A comment that names the times is a header. One with as many words as there are columns, of which one stands twice,
// is a sentence.
void check_names(Table& table) {
  std::set<std::string_view> seen;
  for (const std::string& name : table.names)
    if (!name.empty() && !seen.insert(name).second) {
      if (table.names_in_comment && find_time_names(table.names).empty()) {
        table.names_in_comment = false;
        return table.names.clear();
      }
      fail(ErrorCode::bad_text, table.where, "two columns named '" + display_text(name) + "'",
           "different names in the header");
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
  if (chosen.second) {
    recording.time.second_position = *chosen.second;
    parse_pair_times(recording, table, chosen);
  } else if (above.tick != 0 && !options.unit && recording.time.name == above.time) {
    parse_ticks(recording, table, chosen.index, above.tick);
  } else {
    parse_times(recording, table, chosen.index, options);
  }
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
