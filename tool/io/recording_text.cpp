// Reading recordings from text: csv tables, and TUM trajectories (`timestamp tx ty tz qx qy qz qw`, seconds, metres).
#include <algorithm>
#include <set>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/settings.hpp"
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
  if (const auto chosen = choose_times(recording, table.names, options.times())) return *chosen;
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

[[noreturn]] void fail_time(const Table& table, std::size_t row, std::size_t column, ParseResult result,
                            const std::string& unit) {
  const std::string_view text = table.at(row, column).text;
  if (result == ParseResult::not_a_number)
    fail_field(table, row, column, unit.empty() ? "an ISO 8601 time as in the rows before" : "a time in " + unit);
  if (result == ParseResult::not_finite)
    fail(ErrorCode::times_not_finite, table.place(row, column), "'" + display_text(text) + "'", "a finite time");
  fail(ErrorCode::time_overflow, table.place(row, column), display_text(text) + (unit.empty() ? "" : " " + unit),
       kTimeRange,
       unit.empty() ? "" : "Name the unit with --time-unit: timestamps of this size are usually ns, us or ms.");
}

/// Reads all times in one unit. Returns the row of the first field that is no time, or the number of rows.
std::size_t parse_numbers(const Table& table, std::size_t column, TimeUnit unit, std::vector<std::int64_t>& times,
                          ParseResult& result) {
  for (std::size_t row = 0; row < times.size(); ++row) {
    result = parse_time(table.at(row, column).text, unit, times[row]);
    if (result != ParseResult::good) return row;
  }
  return times.size();
}

/// Numbers of the first rows and the last one, as far as they are numbers.
std::vector<double> first_numbers(const Table& table, std::size_t column) {
  constexpr std::size_t kRows = 1000;
  std::vector<double> numbers;
  for (std::size_t row = 0; row < table.rows(); row = row + 1 < kRows ? row + 1 : std::max(row + 1, table.rows() - 1)) {
    double value = 0;
    if (parse_real(table.at(row, column).text, value) == ParseResult::good) numbers.push_back(value);
  }
  return numbers;
}

// Times without a stated unit are seconds, unless they are dates in another unit, or so large that only nanoseconds can
// hold them.
void parse_number_times(Recording& recording, const Table& table, std::size_t column, const ReadOptions& options) {
  TimeColumn& time = recording.time;
  if (options.unit) {
    time.unit = *options.unit;
    time.unit_source = UnitSource::option;
  } else if (const auto named = table.names.empty() ? std::nullopt : unit_in_name(table.names[column])) {
    time.unit = *named;
    time.unit_source = UnitSource::name;
  }
  if (time.unit_source == UnitSource::usual)
    if (const auto unit = unit_of_dates(first_numbers(table, column), time.unit)) {
      time.unit = *unit;
      time.unit_source = *unit == TimeUnit::nanoseconds ? UnitSource::only_fit : UnitSource::dates;
    }
  ParseResult result = ParseResult::good;
  std::size_t row = parse_numbers(table, column, time.unit, recording.times, result);
  if (result == ParseResult::out_of_range && time.unit_source == UnitSource::usual) {
    std::int64_t unused = 0;
    std::vector<std::int64_t> nanoseconds(recording.times.size());
    ParseResult other = ParseResult::good;
    if (parse_time(table.at(row, column).text, TimeUnit::microseconds, unused) == ParseResult::out_of_range &&
        parse_numbers(table, column, TimeUnit::nanoseconds, nanoseconds, other) == nanoseconds.size()) {
      recording.times = std::move(nanoseconds);
      time.unit = TimeUnit::nanoseconds;
      time.unit_source = UnitSource::only_fit;
      row = recording.times.size();
    }
  }
  if (row < recording.times.size()) fail_time(table, row, column, result, std::string(to_string(time.unit)));
  time.integer = true;
  for (row = 0; time.integer && row < recording.times.size(); ++row)
    time.integer = table.at(row, column).text.find_first_of(".eE") == std::string_view::npos;
}

// Whole numbers of a tick that has no unit. They are said, and written, in microseconds.
void parse_ticks(Recording& recording, const Table& table, std::size_t column, std::int64_t tick) {
  for (std::size_t row = 0; row < recording.times.size(); ++row) {
    const auto number = parse_integer(table.at(row, column).text);
    if (!number) fail_field(table, row, column, "a whole number");
    if (__builtin_mul_overflow(*number, tick, &recording.times[row]))
      fail_time(table, row, column, ParseResult::out_of_range, "");
  }
  recording.time.integer = true;
  recording.time.unit = TimeUnit::microseconds;
  recording.time.unit_source = UnitSource::format;
  recording.time.name = name_with_unit(recording.time.name, recording.time.unit);
}

void parse_iso_times(Recording& recording, const Table& table, std::size_t column, const ReadOptions& options) {
  TimeColumn& time = recording.time;
  time.form = TimeForm::iso8601;
  time.unit_source = UnitSource::format;
  IsoStyle first;
  for (std::size_t row = 0; row < recording.times.size(); ++row) {
    IsoStyle style;
    const ParseResult result = parse_iso_time(table.at(row, column).text, recording.times[row], style);
    if (result != ParseResult::good) fail_time(table, row, column, result, "");
    if (row == 0) first = style;
    if (style.zone.empty() != first.zone.empty())
      fail_field(table, row, column, first.zone.empty() ? "a time without a zone, as before" : "a zone, as before");
  }
  time.iso = first;
  warn_of_zone(recording, options.times());
}

void parse_pair_times(Recording& recording, const Table& table, const ChosenTimes& chosen) {
  recording.time.unit_source = UnitSource::format;
  recording.time.integer = true;
  for (std::size_t row = 0; row < recording.times.size(); ++row) {
    std::int64_t parts[2] = {0, 0};
    for (const int i : {0, 1}) {
      const std::size_t column = i == 0 ? chosen.index : *chosen.second;
      const auto part = parse_integer(table.at(row, column).text);
      if (!part)
        fail_field(table, row, column,
                   i == 0 ? "whole seconds beside nanoseconds" : "whole nanoseconds beside seconds");
      parts[i] = *part;
    }
    recording.times[row] = join_pair(recording, static_cast<std::int64_t>(row), parts[0], parts[1]);
  }
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
  } else if (table.rows() != 0 && looks_like_date(table.at(0, chosen.index).text)) {
    parse_iso_times(recording, table, chosen.index, options);
  } else if (above.tick != 0 && !options.unit && recording.time.name == above.time) {
    parse_ticks(recording, table, chosen.index, above.tick);
  } else {
    parse_number_times(recording, table, chosen.index, options);
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
