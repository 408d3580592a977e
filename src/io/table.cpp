#include "io/table.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <utility>

#include "io/decimal.hpp"
#include "io/file_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kMostColumns = 65'536;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_number(const TableField& field) {
  double value = 0;
  return !field.quoted && parse_real(field.text, value) != ParseResult::not_a_number;
}

// The delimiter of a line: ';' before ',' because a decimal comma may stand beside a ';', blanks when there is neither.
char find_delimiter(std::string_view line) {
  bool quoted = false, comma = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c == ';') return ';';
    comma = comma || (!quoted && c == ',');
  }
  return comma ? ',' : ' ';
}

class LineSplitter {
 public:
  LineSplitter(std::string_view where, std::deque<std::string>& unquoted) : where_(where), unquoted_(unquoted) {}

  void split(std::string_view line, std::int64_t number, char delimiter, std::vector<TableField>& fields) {
    std::size_t at = 0;
    const bool blanks = delimiter == ' ';
    const auto skip_blanks = [&] {
      while (at < line.size() && is_blank(line[at])) ++at;
    };
    skip_blanks();
    while (true) {
      skip_blanks();
      const std::size_t start = at;
      if (at < line.size() && line[at] == '"') {
        fields.push_back(quoted(line, at, number));
        skip_blanks();
        if (at < line.size() && line[at] != delimiter && !(blanks && at > start && is_blank(line[at - 1])))
          fail(number, at, "text after a closing quote", "a delimiter");
      } else {
        while (at < line.size() && (blanks ? !is_blank(line[at]) : line[at] != delimiter)) ++at;
        fields.push_back({trimmed(line.substr(start, at - start)), static_cast<std::uint32_t>(start + 1), false});
      }
      if (blanks) {
        skip_blanks();
        if (at >= line.size()) return;
      } else {
        if (at >= line.size()) return;
        ++at;
      }
    }
  }

  [[noreturn]] void fail(std::int64_t line, std::size_t at, std::string got, std::string needed) const {
    throw Error(ErrorCode::bad_text,
                {.where = std::string(where_) + ":" + std::to_string(line) + ":" + std::to_string(at + 1),
                 .got = std::move(got),
                 .needed = std::move(needed)});
  }

 private:
  TableField quoted(std::string_view line, std::size_t& at, std::int64_t number) {
    const std::size_t start = at++;
    bool doubled = false;
    const std::size_t first = at;
    for (; at < line.size(); ++at) {
      if (line[at] != '"') continue;
      if (at + 1 >= line.size() || line[at + 1] != '"') break;
      doubled = true;
      ++at;
    }
    if (at >= line.size()) fail(number, start, "a quote without an end in its line", "a closing quote");
    TableField field{line.substr(first, at - first), static_cast<std::uint32_t>(start + 1), true};
    ++at;
    if (doubled) {
      std::string text;
      for (std::size_t i = 0; i < field.text.size(); ++i) {
        text += field.text[i];
        if (field.text[i] == '"') ++i;
      }
      field.text = unquoted_.emplace_back(std::move(text));
    }
    return field;
  }

  std::string_view where_;
  std::deque<std::string>& unquoted_;
};

}  // namespace

std::string Table::place(std::size_t row, std::size_t column) const {
  return where + ":" + std::to_string(lines[row]) + ":" + std::to_string(at(row, column).column);
}

Table parse_table(std::string_view text, std::string where, const TableOptions& options) {
  Table table;
  table.where = std::move(where);
  table.columns = options.columns;
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error(ErrorCode::bad_format, {.where = table.where,
                                        .got = "a zero byte at offset " + std::to_string(zero),
                                        .needed = "text (ASCII or UTF-8)"});
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  LineSplitter splitter(table.where, table.unquoted);
  std::string_view comment;
  bool first = true;
  std::vector<TableField> fields;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view content = trimmed(line);
    if (content.empty()) continue;
    if (content[0] == '#') {
      if (first) comment = trimmed(content.substr(1));
      continue;
    }
    if (first) table.delimiter = options.delimiter != 0 ? options.delimiter : find_delimiter(content);
    fields.clear();
    splitter.split(line, number, table.delimiter, fields);
    if (fields.size() > kMostColumns) splitter.fail(number, 0, "more than 65,536 fields", "a table of time series");
    if (first) {
      first = false;
      if (table.columns == 0) table.columns = fields.size();
      const bool header = options.header && std::none_of(fields.begin(), fields.end(), is_number);
      if (header || !comment.empty()) {
        std::vector<TableField> names;
        if (header) {
          names = fields;
        } else if (find_delimiter(comment) == table.delimiter && comment.find('"') == std::string_view::npos) {
          splitter.split(comment, number, table.delimiter, names);
        }
        if (header || names.size() == fields.size())
          for (const TableField& name : names) table.names.emplace_back(name.text);
        table.names_in_comment = !header;
      }
      if (header) {
        table.columns = fields.size();
        continue;
      }
    }
    if (fields.size() != table.columns)
      splitter.fail(number, fields.size() > table.columns ? fields[table.columns].column - 1 : line.size(),
                    std::to_string(fields.size()) + " fields", std::to_string(table.columns));
    table.fields.insert(table.fields.end(), fields.begin(), fields.end());
    table.lines.push_back(number);
  }
  return table;
}

void fail_field(const Table& table, std::size_t row, std::size_t column, const std::string& needed) {
  const TableField& field = table.at(row, column);
  std::string mend;
  if (const std::size_t comma = field.text.find(','); comma != std::string_view::npos) {
    std::string with_point(field.text);
    with_point[comma] = '.';
    double value = 0;
    if (parse_real(with_point, value) == ParseResult::good)
      mend =
          "This looks like a decimal comma: write " + with_point + ". Numbers are read with a point in every locale.";
  }
  throw Error(ErrorCode::bad_text, {.where = table.place(row, column),
                                    .got = field.text.empty() ? "an empty field" : "'" + display_text(field.text) + "'",
                                    .needed = needed,
                                    .mend = std::move(mend)});
}

std::vector<double> column_reals(const Table& table, std::size_t column) {
  std::vector<double> values(table.rows());
  for (std::size_t row = 0; row < values.size(); ++row) {
    const TableField& field = table.at(row, column);
    if (field.text.empty()) {
      values[row] = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    switch (parse_real(field.text, values[row])) {
      case ParseResult::good:
        break;
      case ParseResult::out_of_range:
        fail_field(table, row, column, "a number that a 64-bit float can hold");
      default:
        fail_field(table, row, column, "a number");
    }
  }
  return values;
}

namespace {

/// The whole numbers of a column; out_of_range when they are all whole but some beyond an int64.
ParseResult column_integers(const Table& table, std::size_t column, std::vector<std::int64_t>& values) {
  ParseResult all = ParseResult::good;
  for (std::size_t row = 0; row < values.size(); ++row) {
    const ParseResult one = parse_integer(table.at(row, column).text, values[row]);
    if (one == ParseResult::not_a_number) return one;
    if (one != ParseResult::good) all = one;
  }
  return all;
}

/// Whole numbers up to 2^64.
std::vector<std::uint64_t> column_large_integers(const Table& table, std::size_t column) {
  std::vector<std::uint64_t> values(table.rows());
  for (std::size_t row = 0; row < values.size(); ++row) {
    std::string_view text = table.at(row, column).text;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), values[row]);
    if (error != std::errc() || end != text.data() + text.size())
      fail_field(table, row, column, "whole numbers that all fit in int64 or all in uint64, or a decimal point");
  }
  return values;
}

}  // namespace

Array column_array(const Table& table, std::size_t column) {
  const std::size_t rows = table.rows();
  std::size_t first = 0;  // the first field with something in it says what the column is
  while (first < rows && table.at(first, column).text.empty()) ++first;
  if (first < rows && !is_number(table.at(first, column))) {
    // A decimal comma would silently make the whole column text.
    const std::string_view text = table.at(first, column).text;
    if (std::count(text.begin(), text.end(), ',') == 1 && !table.at(first, column).quoted) {
      std::string with_point(text);
      with_point[text.find(',')] = '.';
      double value = 0;
      if (parse_real(with_point, value) == ParseResult::good) fail_field(table, first, column, "a number or text");
    }
    std::vector<std::string> values(rows);
    for (std::size_t row = 0; row < rows; ++row) values[row] = table.at(row, column).text;
    return make_array(values);
  }
  const auto shape = [&] { return std::vector<std::int64_t>{static_cast<std::int64_t>(rows)}; };
  if (first < rows) {
    std::vector<std::int64_t> integers(rows);
    const ParseResult result = column_integers(table, column, integers);
    if (result == ParseResult::good) return make_array(integers, shape());
    // As real numbers they would lose their last digits, and be interpolated.
    if (result == ParseResult::out_of_range) return make_array(column_large_integers(table, column), shape());
  }
  return make_array(column_reals(table, column), shape());
}

std::string quoted_field(std::string_view text, char delimiter) {
  const bool plain = !text.empty() && text.find_first_of("\"#\t\r\n") == std::string_view::npos &&
                     text.find(delimiter) == std::string_view::npos && !is_blank(text.front()) &&
                     !is_blank(text.back());
  double value = 0;
  if (plain && parse_real(text, value) == ParseResult::not_a_number) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;  // a field cannot hold a line break here
  }
  return quoted + '"';
}

}  // namespace tmaops::io
