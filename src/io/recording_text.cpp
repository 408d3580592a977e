// Recordings in text files: csv tables, and TUM trajectories (`timestamp tx ty tz qx qy qz qw`, seconds, metres).
#include <algorithm>
#include <array>
#include <set>

#include "io/file_error.hpp"
#include "io/output_file.hpp"
#include "io/recording.hpp"
#include "io/table.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

// https://cvg.cit.tum.de/data/datasets/rgbd-dataset/file_formats
constexpr std::array<std::string_view, 8> kTumColumns{"timestamp", "tx", "ty", "tz", "qx", "qy", "qz", "qw"};

std::size_t find_time_column(const Table& table, const ReadOptions& options) {
  if (options.times_name.empty()) return find_time_name(table.names).value_or(0);
  for (std::size_t i = 0; i < table.names.size(); ++i)
    if (table.names[i] == options.times_name) return i;
  std::int64_t number = 0;
  if (parse_integer(options.times_name, number) == ParseResult::good && number >= 1 &&
      number <= static_cast<std::int64_t>(table.columns))
    return static_cast<std::size_t>(number - 1);
  std::string names;
  for (const std::string& name : table.names) names += (names.empty() ? "" : ", ") + display_text(name);
  throw Error(ErrorCode::array_missing, {.where = table.where,
                                         .got = "no column '" + display_text(options.times_name) + "'",
                                         .needed = (names.empty() ? "" : "one of " + names + ", or ") +
                                                   "a number from 1 to " + std::to_string(table.columns)});
}

std::vector<std::int64_t> parse_times(const Table& table, std::size_t column, TimeColumn& time) {
  std::vector<std::int64_t> times(table.rows());
  time.integer = true;
  for (std::size_t row = 0; row < times.size(); ++row) {
    const std::string_view text = table.at(row, column).text;
    switch (parse_time(text, time.unit, times[row])) {
      case ParseResult::good:
        time.integer = time.integer && text.find_first_of(".eE") == std::string_view::npos;
        break;
      case ParseResult::not_a_number:
        fail_field(table, row, column, "a time in " + std::string(to_string(time.unit)));
      case ParseResult::not_finite:
        throw Error(
            ErrorCode::times_not_finite,
            {.where = table.place(row, column), .got = "'" + display_text(text) + "'", .needed = "a finite time"});
      case ParseResult::out_of_range:
        throw Error(ErrorCode::time_overflow,
                    {.where = table.place(row, column),
                     .got = display_text(text) + " " + std::string(to_string(time.unit)),
                     .needed = "a time within 292 years of 0, the range of int64 nanoseconds",
                     .mend = "Name the unit with --time-unit: stamps of this size are usually ns, us or ms."});
    }
  }
  return times;
}

// A sentence in a comment with as many words as there are columns, one of them twice, is no header; a comment that
// names the times is one.
void check_names(Table& table) {
  std::set<std::string_view> seen;
  for (const std::string& name : table.names)
    if (!name.empty() && !seen.insert(name).second) {
      if (table.names_in_comment && !find_time_name(table.names)) return table.names.clear();
      throw Error(ErrorCode::bad_text, {.where = table.where,
                                        .got = "two columns named '" + display_text(name) + "'",
                                        .needed = "different names in the header"});
    }
}

// One column of numbers or text per field of a text row.
struct Field {
  std::string name;
  const Array* data;
  std::int64_t width;    // of the array
  std::int64_t channel;  // in its row
};

std::vector<Field> flattened(const Recording& recording) {
  std::vector<Field> fields;
  for (const Column& column : recording.columns)
    for (std::int64_t channel = 0; channel < column.width(); ++channel)
      fields.push_back({column.data.shape.size() > 1 ? column.name + "_" + std::to_string(channel) : column.name,
                        &column.data, column.width(), channel});
  return fields;
}

// The seven columns of a TUM file, under their own names or as position_0.. and quaternion_0.. from an archive.
std::vector<Field> tum_fields(const Recording& recording) {
  const std::vector<Field> all = flattened(recording);
  std::vector<Field> chosen;
  for (std::size_t i = 1; i < kTumColumns.size(); ++i) {
    const std::string other = i <= 3 ? "position_" + std::to_string(i - 1) : "quaternion_" + std::to_string(i - 4);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Field& field) {
      return (field.name == kTumColumns[i] || field.name == other) && field.data->type.kind != ElementKind::text;
    });
    if (found == all.end())
      throw Error(ErrorCode::bad_parameter,
                  {.where = recording.where,
                   .got = "no column '" + std::string(kTumColumns[i]) + "' for a TUM trajectory",
                   .needed = "tx ty tz qx qy qz qw, or arrays position (rows, 3) and quaternion (rows, 4)",
                   .mend = "Write csv or npz, or rename the columns."});
    chosen.push_back(*found);
  }
  return chosen;
}

std::string field_text(const Field& field, std::int64_t row, char delimiter) {
  const std::int64_t index = row * field.width + field.channel;
  switch (field.data->type.kind) {
    case ElementKind::real:
      return real_field_text(element_f64(*field.data, index));
    case ElementKind::boolean:
      return element_f64(*field.data, index) != 0 ? "true" : "false";
    case ElementKind::text:
      return quoted_field(element_text(*field.data, index), delimiter);
    case ElementKind::integer:
      break;
  }
  if (const auto value = element_i64(*field.data, index)) return std::to_string(*value);
  std::uint64_t large = 0;  // <u8 above 2^63
  std::copy_n(field.data->data.get() + index * 8, 8, reinterpret_cast<std::byte*>(&large));
  return std::to_string(large);
}

}  // namespace

Recording parse_text_recording(std::string_view text, const std::string& where, FileFormat format,
                               const ReadOptions& options) {
  const bool tum = format == FileFormat::tum;
  if (text.empty())
    throw Error(ErrorCode::bad_format,
                {.where = where, .got = "an empty file", .needed = tum ? "a TUM trajectory" : "a csv table"});
  TableOptions table_options;
  if (tum) table_options = {.delimiter = ' ', .header = false, .columns = kTumColumns.size()};
  Table table = parse_table(text, where, table_options);
  if (tum) table.names.clear();  // its columns have names of their own
  Recording recording;
  recording.where = where;
  recording.format = format;
  recording.delimiter = tum ? ',' : table.delimiter;
  recording.lines = table.lines;
  recording.named = tum || !table.names.empty();
  if (table.columns == 0)
    throw Error(ErrorCode::empty_trajectory, {.where = where, .got = "no line of data", .needed = "at least one row"});
  check_names(table);
  const std::size_t time_column = tum ? 0 : find_time_column(table, options);
  recording.time.position = time_column;
  const std::string time_name = table.names.empty() ? "timestamp" : table.names[time_column];
  if (!tum) recording.time.name = time_name;
  const auto named_unit = tum ? std::nullopt : unit_in_name(time_name);
  recording.time.unit = options.unit ? *options.unit : named_unit.value_or(TimeUnit::seconds);
  recording.times = parse_times(table, time_column, recording.time);
  if (tum) {
    recording.time.integer = false;
    recording.time.unit = TimeUnit::seconds;
  }
  for (std::size_t i = 0; i < table.columns; ++i) {
    if (i == time_column) continue;
    Column column;
    if (tum) {
      column = {std::string(kTumColumns[i]), make_array(column_reals(table, i), {recording.rows()})};
    } else {
      column = {table.names.empty() ? "column_" + std::to_string(i + 1) : table.names[i], column_array(table, i)};
    }
    recording.columns.push_back(std::move(column));
  }
  return recording;
}

std::vector<std::string> left_out(const Recording& recording, FileFormat format) {
  std::vector<std::string> names;
  if (format == FileFormat::npz) return names;
  if (format == FileFormat::tum) {
    std::set<const Array*> written;
    for (const Field& field : tum_fields(recording)) written.insert(field.data);
    for (const Column& column : recording.columns)
      if (written.count(&column.data) == 0) names.push_back(column.name);
  }
  for (const Column& column : recording.others) names.push_back(column.name);
  return names;
}

void write_text_recording(OutputFile& file, const Recording& recording, FileFormat format) {
  const bool tum = format == FileFormat::tum;
  if (recording.offsets.size() > 2)
    throw Error(ErrorCode::bad_parameter, {.where = recording.where,
                                           .got = std::to_string(recording.offsets.size() - 1) + " episodes",
                                           .needed = "one episode for a text file",
                                           .mend = "Write npz."});
  const std::vector<Field> fields = tum ? tum_fields(recording) : flattened(recording);
  const char delimiter = tum ? ' ' : recording.delimiter;
  const std::size_t position = tum ? 0 : std::min(recording.time.position, fields.size());
  std::string line;
  if (tum) {
    line = "#";
    for (const std::string_view name : kTumColumns) line += " " + std::string(name);
    file.write(line + "\n");
  } else if (recording.named) {
    line.clear();
    const std::string time_name = written_time_name(recording, format, recording.time.unit);
    std::set<std::string> taken{time_name};
    for (std::size_t i = 0; i <= fields.size(); ++i) {
      if (i != 0) line += delimiter;
      std::string name = i == position ? time_name : fields[i - (i > position)].name;
      if (i != position && !name.empty()) name = unique_name(name, taken);
      line += quoted_field(name, delimiter);
    }
    file.write(line + "\n");
  }
  const TimeUnit unit = tum ? TimeUnit::seconds : recording.time.unit;
  const int digits = digits_needed(recording.times, unit);
  for (std::int64_t row = 0; row < recording.rows(); ++row) {
    line.clear();
    for (std::size_t i = 0; i <= fields.size(); ++i) {
      if (i != 0) line += delimiter;
      const std::size_t field = i - (i > position);
      if (i == position) {
        line += time_text(recording.times[static_cast<std::size_t>(row)], unit, digits);
      } else if (recording.valid.empty() || recording.valid[static_cast<std::size_t>(row)] != 0 ||
                 fields[field].data->type.kind == ElementKind::real) {
        line += field_text(fields[field], row, delimiter);
      } else {  // an integer or text without data: there is no NaN of its type
        line += delimiter == ' ' || delimiter == '\t' ? "\"\"" : "";
      }
    }
    line += '\n';
    file.write(line);
  }
}

}  // namespace tmaops::io
