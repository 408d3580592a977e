// What the fields of a text table's column are: whole numbers, real numbers or text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/table.hpp"

namespace tmaops::io {

/// A field without a value: empty, or NA, N/A, None, null, NaN, NaT in any case, as R, Python, SQL and pandas write it.
bool is_missing(std::string_view field);

struct TableColumn {
  Array data{};                     // i64 (u64 beyond that), f64, or ragged text
  std::int64_t missing = 0;         // fields without a value
  std::int64_t numeric_fields = 0;  // of text: fields that are numbers, or would be with a point for their comma
  std::string first_other{};        // and the first of the others, where there are both: "'0x10' at file.csv:12:5"
  std::int64_t not_utf8 = 0;        // of text: fields with bytes that are not UTF-8
  bool whole_with_missing = false;  // whole numbers that became real because some have no value
};

/// A column is of numbers when every field with a value is one, quoted or not: i64 (u64 beyond that) when all are whole
/// and none is missing, else f64 with NaN for the missing ones. Otherwise it is text. Throws Error bad_text for a
/// column of decimal commas, for whole numbers beyond int64 and uint64, and for numbers beyond f64.
TableColumn table_column(const Table& table, std::size_t column);

/// A column as f64, whatever it looks like; NaN where a value is missing. Throws Error bad_text.
std::vector<double> column_reals(const Table& table, std::size_t column);

/// The error for a field that is no number; points to a decimal comma when that is what it looks like.
[[noreturn]] void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed);

}  // namespace tmaops::io
