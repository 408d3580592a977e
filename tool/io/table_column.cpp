#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "io/table.hpp"

namespace tmaops::io {
namespace {

constexpr const char* kTooLarge = "a number that a 64-bit float can hold";

// "1,5" as "1.5"; nothing when the text does not look like a number with a decimal comma.
std::string with_decimal_point(std::string_view text) {
  if (std::count(text.begin(), text.end(), ',') != 1) return {};
  std::string with_point(text);
  with_point[text.find(',')] = '.';
  double value = 0;
  return parse_real(with_point, value) == ParseResult::not_a_number ? "" : with_point;
}

template <class T>
bool parse_all(const Table& table, std::size_t column, std::vector<T>& values, std::size_t& row) {
  for (row = 0; row < values.size(); ++row) {
    std::string_view text = trimmed(table.at(row, column).text);
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), values[row]);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  }
  return true;
}

// Refuses whole numbers beyond int64: as real numbers they would lose their last digits.
Array whole_numbers(const Table& table, std::size_t column) {
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(table.rows())};
  std::size_t row = 0;
  std::vector<std::int64_t> values(table.rows());
  if (parse_all(table, column, values, row)) return make_array(values, shape);
  std::vector<std::uint64_t> large(table.rows());
  if (parse_all(table, column, large, row)) return make_array(large, shape);
  fail_field(table, row, column, "whole numbers that all fit in int64 or all in uint64, or a decimal point");
}

/// Sets booleans, where every field is true or false in any case.
bool read_booleans(const Table& table, std::size_t column, Array& booleans) {
  std::vector<std::uint8_t> truths;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string text = lower_case(table.at(row, column).text);
    if (text != "true" && text != "false") return false;
    truths.push_back(text == "true");
  }
  booleans = make_booleans(truths);
  return true;
}

}  // namespace

Array text_of(const Table& table, std::size_t column) {
  std::vector<std::string_view> values(table.rows());
  for (std::size_t row = 0; row < values.size(); ++row) values[row] = table.at(row, column).text;
  return make_text_array(values);
}

bool is_missing(std::string_view field) {
  field = trimmed(field);
  static constexpr std::string_view kMissing =
      "||nan|na|n/a|none|null|nat|#na|#n/a|<na>|-nan|+nan|nil|nan(ind)|-nan(ind)|1.#qnan|-1.#qnan|1.#ind|-1.#ind|";
  return field.size() < 10 && field.find('|') == std::string_view::npos &&
         kMissing.find("|" + lower_case(field) + "|") != std::string_view::npos;
}

void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed) {
  const TableField& field = table.at(row, column);
  std::string mend = with_decimal_point(field.text);
  if (!mend.empty())
    mend = "This looks like a decimal comma: write " + mend + ". Numbers are read with a point in every locale.";
  fail(ErrorCode::bad_text, table.place(row, column),
       field.text.empty() ? "an empty field" : "'" + display_text(field.text) + "'", needed, mend);
}

std::vector<double> column_reals(const Table& table, std::size_t column) {
  std::vector<double> values(table.rows());
  for (std::size_t row = 0; row < values.size(); ++row) {
    const std::string_view text = table.at(row, column).text;
    if (is_missing(text)) {
      values[row] = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    const ParseResult result = parse_real(trimmed(text), values[row]);
    if (result != ParseResult::good)
      fail_field(table, row, column, result == ParseResult::out_of_range ? kTooLarge : "a number");
  }
  return values;
}

/// A number with a unit behind it, "1.5m", or with marks between its thousands, "1,000.5"; a list of numbers; digits
/// behind U+2212, the sign of typesetting.
bool begins_with_number(std::string_view text) {
  static constexpr std::string_view kUnits = " m mm cm km s ms us ns deg rad hz % m/s rpm v a n nm kg g ";
  text.remove_prefix(std::min(text.find_first_not_of("[( "), text.size()));
  if (text.starts_with("\u2212")) text.remove_prefix(3);
  double value = 0;
  const bool first = parse_real(text.substr(0, text.find_first_of(",;' )]")), value) == ParseResult::good;
  if (first && text.find_first_not_of("0123456789+-.eE,;' ()[]") == std::string_view::npos) return true;
  const std::size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos || parse_real(text.substr(0, end + 1), value) != ParseResult::good) return false;
  return kUnits.find(" " + lower_case(trimmed(text.substr(end + 1))) + " ") != std::string_view::npos;
}

TableColumn table_column(const Table& table, std::size_t column) {
  const std::size_t rows = table.rows();
  TableColumn result;
  std::vector<double> values(rows, std::numeric_limits<double>::quiet_NaN());
  bool all_whole = true, all_commas = true;
  std::size_t others = 0, first_other = rows, first_comma = rows, too_large = rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const TableField& field = table.at(row, column);
    if (is_missing(field.text)) {
      ++result.missing;
      continue;
    }
    const std::string_view text = trimmed(field.text);
    const ParseResult parsed = parse_real(text, values[row]);
    if (parsed == ParseResult::out_of_range) too_large = std::min(too_large, row);
    if (parsed != ParseResult::not_a_number) {
      ++result.numeric_fields;
      all_whole = all_whole && std::isfinite(values[row]) && recording::is_whole(text);
      continue;
    }
    const bool comma = !with_decimal_point(text).empty();
    result.numeric_fields += comma || begins_with_number(text);
    if (comma) first_comma = std::min(first_comma, row);
    all_commas = all_commas && comma && !field.quoted;
    if (others++ == 0) first_other = row;
  }
  if (others != 0) {
    if (all_commas) fail_field(table, first_comma, column, "a number or text");
    if (read_booleans(table, column, result.data)) return result;
    result.data = text_of(table, column);
    for (std::int64_t row = 0; row < result.data.size(); ++row)
      result.not_utf8 += !is_utf8(ragged_text(result.data, row));
    if (result.numeric_fields != 0) {
      result.first_other =
          "'" + display_text(table.at(first_other, column).text) + "' at " + table.place(first_other, column);
      if (first_comma == first_other) result.first_other += ", which looks like a decimal comma";
    }
    return result;
  }
  const bool none = result.numeric_fields == 0;
  result.numeric_fields = 0;
  if (!none && all_whole && result.missing == 0) {
    result.data = whole_numbers(table, column);
    return result;
  }
  if (too_large < rows) fail_field(table, too_large, column, kTooLarge);
  result.whole_with_missing = !none && all_whole;
  result.data = make_array(values, {static_cast<std::int64_t>(rows)});
  return result;
}

}  // namespace tmaops::io
