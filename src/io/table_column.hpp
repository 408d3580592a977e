// Converts the fields of a column of a text table to whole numbers, real numbers or text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/table.hpp"

namespace tmaops::io {

/// Whether a field has no value: empty, or NA, N/A, None, null, NaN, NaT in any case, as R, Python, SQL and pandas
/// write.
bool is_missing(std::string_view field);

struct TableColumn {
  Array data{};                     // i64 (u64 beyond that), f64, or ragged text
  std::int64_t missing = 0;         // fields without a value
  std::int64_t numeric_fields = 0;  // of text: fields that are numbers, or would be with a point for their comma
  std::string first_other{};        // the first field that is no number, where some are: "'0x10' at file.csv:12:5"
  std::int64_t not_utf8 = 0;        // of text: fields with bytes that are not UTF-8
  bool whole_with_missing = false;  // whole numbers that became real because some have no value
};

/// A column is of numbers when every field with a value is a number, quoted or not: i64 (u64 beyond that) when all are
/// whole and none is missing, else f64 with NaN for missing ones. Otherwise it is text. Throws Error bad_text for a
/// column of decimal commas, for whole numbers beyond int64 and uint64, and for numbers beyond f64.
TableColumn table_column(const Table& table, std::size_t column);

/// A column as f64, with NaN where a value is missing. Throws Error bad_text when a field is no number.
std::vector<double> column_reals(const Table& table, std::size_t column);

/// The error for a field that is no number. It mentions a decimal comma where the field looks like one.
[[noreturn]] void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed);

}  // namespace tmaops::io
