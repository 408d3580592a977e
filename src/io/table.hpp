// Text tables: csv with ',' or ';', and columns between blanks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"

namespace tmaops::io {

/// A column keeps its fields as text in the file's memory until the caller says what they are.
struct TableField {
  std::string_view text;
  std::uint32_t column = 1;  // in bytes, where it starts in its line, from 1
  bool quoted = false;
};

/// A parsed table. The fields point into the text it was parsed from (and into `unquoted`), which must outlive it.
struct Table {
  std::string where;               // file name for messages
  char delimiter = ',';            // ',' ';' or ' ' for any run of blanks
  std::vector<std::string> names;  // empty when the file has no header
  bool names_in_comment = false;
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
  char delimiter = 0;       // 0: found from the first line
  bool header = true;       // a first line without any number is one; otherwise only a comment line may name columns
  std::size_t columns = 0;  // number of fields each line must have; 0: that of the first
};

/// Parses a text table. Empty lines and lines that start with '#' are skipped, but the last such line before the data
/// names the columns when it has as many words as they are. Fields may stand in double quotes. Throws Error bad_format
/// (zero bytes in it: no text), bad_text (another number of fields, quotes without end) with file:line:column.
Table parse_table(std::string_view text, std::string where, const TableOptions& options = {});

/// A column as numbers: i64 (u64 beyond that) when every field is a whole number, f64 when every field is a number (an
/// empty one is NaN), text when its first field is quoted or no number. Throws Error bad_text for a field that does not
/// fit the first.
Array column_array(const Table& table, std::size_t column);
/// A column as f64, whatever it looks like. Throws Error bad_text.
std::vector<double> column_reals(const Table& table, std::size_t column);

/// The error for a field that is no number; points to a decimal comma when that is what it looks like.
[[noreturn]] void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed);

/// A field as csv writes it: in quotes when it has a delimiter, quote, '#', blank at an end or line break in it.
std::string quoted_field(std::string_view text, char delimiter);

}  // namespace tmaops::io
