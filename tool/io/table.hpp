// Text tables: csv with ',' or ';', columns between tabs or between blanks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io/names.hpp"

namespace tmaops::io {

/// A field is text in the file's memory until the caller converts it.
struct TableField {
  std::string_view text;
  std::uint32_t column = 1;  // in bytes, where it starts in its line, from 1
  bool quoted = false;
};

/// A parsed table. Its fields point into the text it was parsed from, which must outlive it, and into `unquoted`.
struct Table {
  std::string where;               // file name for messages
  char delimiter = ',';            // ',' ';' '\t', or ' ' for any run of blanks
  std::vector<std::string> names;  // UTF-8; empty when the file has no header
  bool names_in_comment = false;
  std::string comment;  // the last comment line before the data, as it is
  std::vector<Note> notes;
  std::vector<Note> warnings;
  std::size_t columns = 0;
  std::vector<TableField> fields;    // rows x columns
  std::vector<std::int64_t> lines;   // of each row, from 1
  std::deque<std::string> unquoted;  // fields that had doubled quotes

  std::size_t rows() const { return lines.size(); }
  const TableField& at(std::size_t row, std::size_t column) const { return fields[row * columns + column]; }
  /// "file.csv:12:5".
  std::string place(std::size_t row, std::size_t column) const;
};

struct TableOptions {
  char delimiter = 0;                // 0: found from the first line
  bool header = true;                // the first line may be one; otherwise only a comment line may name columns
  std::size_t columns = 0;           // number of fields each line must have; 0: that of the first
  bool trajectory = false;           // the error for a line of other fields names the formats that have such lines
  std::int64_t skip_lines = 0;       // at the start of the text, which are not looked at
  bool tabs = false;                 // the first line with a tab in it makes tabs the only delimiter
  std::vector<std::string> names{};  // of the columns, where no line has them; a further empty field is left out
};

/// Parses a text table. Empty lines and lines that start with '#' are skipped, but the last comment before the data
/// names the columns when it has a word for each. The first line is a header when none of its fields is a number or a
/// time, or when a field that is neither stands above one that is. Fields may stand in double quotes. Throws Error
/// bad_format (zero bytes in it: no text), bad_text (another number of fields, quotes without end) with
/// file:line:column.
Table parse_table(std::string_view text, std::string where, const TableOptions& options = {});

/// The text without the blanks and tabs at its ends, which quoted fields keep.
std::string_view trimmed(std::string_view text);
/// Whether a field has no value: empty, or NA, N/A, None, null, NaN, NaT in any case, as R, Python, SQL and pandas
/// write.
bool is_missing(std::string_view field);

struct TableColumn {
  Array data{};                     // i64 (u64 beyond that), f64, booleans, or ragged text
  std::int64_t missing = 0;         // fields without a value
  std::int64_t numeric_fields = 0;  // of text: fields that are numbers, or would be with a point for their comma
  std::string first_other{};        // the first field that is no number, where some are: "'0x10' at file.csv:12:5"
  std::int64_t not_utf8 = 0;        // of text: fields with bytes that are not UTF-8
  bool whole_with_missing = false;  // whole numbers that became real because some have no value
};

/// A column is of numbers when every field with a value is a number, quoted or not: i64 (u64 beyond that) when all are
/// whole and none is missing, else f64 with NaN for missing ones. Otherwise it is text, or booleans where every field
/// is true or false. Throws Error bad_text for a column of decimal commas, for whole numbers beyond int64 and uint64,
/// and for numbers beyond f64.
TableColumn table_column(const Table& table, std::size_t column);

/// The fields of a column as text.
Array text_of(const Table& table, std::size_t column);
/// A column as f64, with NaN where a value is missing. Throws Error bad_text when a field is no number.
std::vector<double> column_reals(const Table& table, std::size_t column);

/// The error for a field that is no number. It mentions a decimal comma where the field looks like one.
[[noreturn]] void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed);
/// The shortest text that reads back as the same number, and not as an integer: "2.0".
std::string real_field_text(double value);

/// A field for csv: in quotes when it contains a delimiter, a quote, '#', a line break, or a blank at an end.
std::string quoted_field(std::string_view text, char delimiter);

}  // namespace tmaops::io
