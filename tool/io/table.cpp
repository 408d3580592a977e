#include "io/table.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/utf8.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kMostColumns = 65'536;
constexpr const char* kLatin = " (iconv -f LATIN1 -t UTF-8 keeps those of Latin-1)";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The delimiter of a line. ';' goes before ',', which may be a decimal comma; without either it is blanks.
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
      while (at < line.size() && is_blank(line[at]) && line[at] != delimiter) ++at;
      while (blanks && at < line.size() && is_blank(line[at])) ++at;
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
      if (blanks) skip_blanks();
      if (at >= line.size()) return;
      if (!blanks) ++at;
    }
  }

  [[noreturn]] void fail(std::int64_t line, std::size_t at, std::string got, std::string needed,
                         std::string mend = {}) const {
    tmaops::fail(ErrorCode::bad_text, std::string(where_) + ":" + std::to_string(line) + ":" + std::to_string(at + 1),
                 got, needed, mend);
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

bool is_value(const TableField& field) {
  double value = 0;
  std::int64_t time = 0;
  IsoStyle style;
  return parse_real(field.text, value) != ParseResult::not_a_number ||
         parse_iso_time(field.text, time, style) != ParseResult::not_a_number;
}

// Decides after the first two lines where the names of the columns are.
class HeaderFinder {
 public:
  HeaderFinder(Table& table, LineSplitter& splitter, const TableOptions& options)
      : table_(table), splitter_(splitter), options_(options) {}

  void decide() {
    if (std::exchange(decided_, true)) return;
    if (!options_.names.empty()) {
      table_.names = options_.names;
    } else if (options_.header && first_line_names()) {
      for (std::size_t i = 0; i < table_.columns; ++i) table_.names.emplace_back(table_.at(0, i).text);
      drop_first_line();
      if (first_line_has_units()) take_units();
    } else {
      take_names_of_comment();
      if (options_.header && table_.names.empty()) warn_of_numbered_columns();
    }
    repair_names();
  }

 private:
  bool first_line_names() {
    bool any_value = false, above_value = false;
    for (std::size_t i = 0; i < table_.columns; ++i) {
      const bool value = is_value(table_.at(0, i));
      any_value = any_value || value;
      above_value = above_value || (!value && !is_missing(table_.at(0, i).text) && table_.rows() > 1 &&
                                    is_value(table_.at(1, i)) && !is_missing(table_.at(1, i).text));
    }
    if (any_value && above_value && is_value(table_.at(0, 0)))
      table_.warnings.push_back({"header_assumed", table_.place(0, 0) + ": the line " + first_line() +
                                                       " was taken as the header, because it has text above a number"});
    return !any_value || above_value;
  }
  void drop_first_line() {
    table_.fields.erase(table_.fields.begin(), table_.fields.begin() + static_cast<std::ptrdiff_t>(table_.columns));
    table_.lines.erase(table_.lines.begin());
  }
  // A line below the names that can be no sample: nothing in it can be a time, begins like one or is missing.
  bool first_line_has_units() const {
    const auto empty = [](const TableField& field) { return field.text.empty(); };
    return !std::ranges::all_of(table_.fields, empty) &&
           std::ranges::all_of(table_.fields, [&](const TableField& field) {
             return empty(field) || !(is_value(field) || is_missing(field.text) || is_digit(field.text[0]));
           });
  }
  void take_units() {
    table_.notes.push_back({"units_line", table_.place(0, 0) + ": the line " + first_line() + " was read as units"});
    for (std::size_t i = 0; i < table_.columns; ++i) {
      std::string_view unit = trimmed(table_.at(0, i).text);
      if (unit.size() > 2 && (unit[0] == '[' || unit[0] == '(')) unit = unit.substr(1, unit.size() - 2);
      if (!unit.empty()) table_.names[i] += " [" + std::string(unit) + "]";
    }
    drop_first_line();
  }
  void take_names_of_comment() {
    std::string_view comment = trimmed(table_.comment);
    if (comment.empty()) return;
    comment = trimmed(comment.substr(1));
    const bool tabs = table_.delimiter == '\t' && comment.find('\t') != std::string_view::npos;
    if (comment.empty() || (find_delimiter(comment) != table_.delimiter && !tabs) ||
        comment.find('"') != std::string_view::npos)
      return;
    std::vector<TableField> names;
    splitter_.split(comment, table_.lines[0], table_.delimiter, names);
    if (names.size() != table_.columns) return;
    for (const TableField& name : names) table_.names.emplace_back(name.text);
    table_.names_in_comment = true;
  }
  // pandas writes 0,1,2 above columns without names.
  void warn_of_numbered_columns() {
    for (std::size_t i = 0; i < table_.columns; ++i)
      if (table_.at(0, i).text != std::to_string(i)) return;
    double second = 0;
    const bool jump = table_.rows() > 1 && parse_real(table_.at(1, 0).text, second) == ParseResult::good &&
                      second >= kRemarkableStart;
    if (table_.columns > 2 || (table_.columns == 2 && jump))
      table_.warnings.push_back(
          {"header_of_numbers", table_.place(0, 0) + ": the line " + first_line() +
                                    " was read as a sample, but it looks like a header of column numbers"});
  }
  void repair_names() {
    std::set<std::string> taken;
    std::string list;
    for (std::string& name : table_.names) {
      if (is_utf8(name)) {
        taken.insert(name);
        continue;
      }
      list += (list.empty() ? "'" : ", '") + display_text(name) + "'";
      name = unique_name(repaired_utf8(name), taken);
    }
    if (!list.empty())
      table_.warnings.push_back(
          {"name_not_utf8", table_.where + ": names that are not UTF-8 were changed: " + list + kLatin});
  }
  std::string first_line() const {
    std::string line;
    for (std::size_t i = 0; i < std::min<std::size_t>(table_.columns, 8); ++i)
      line += (i == 0 ? "'" : ",") + std::string(table_.at(0, i).text);
    return display_text(line) + (table_.columns > 8 ? ",...'" : "'");
  }

  static constexpr double kRemarkableStart = 1000;  // of a second timestamp after a first one of 0
  Table& table_;
  LineSplitter& splitter_;
  const TableOptions& options_;
  bool decided_ = false;
};

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Table::place(std::size_t row, std::size_t column) const {
  return where + ":" + std::to_string(lines[row]) + ":" + std::to_string(at(row, column).column);
}

Table parse_table(std::string_view text, std::string where, const TableOptions& options) {
  Table table;
  table.where = std::move(where);
  table.columns = options.names.empty() ? options.columns : options.names.size();
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail(ErrorCode::bad_format, table.where, "a zero byte at offset " + std::to_string(zero),
         "text (ASCII, UTF-8, or UTF-16 with a byte order mark)",
         "Of UTF-16 without one: iconv -f UTF-16LE -t UTF-8 FILE | tmaops resample - --from csv ...");
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  LineSplitter splitter(table.where, table.unquoted);
  HeaderFinder header(table, splitter, options);
  std::vector<TableField> fields;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (number <= options.skip_lines) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view content = trimmed(line);
    if (content.empty()) continue;
    if (content[0] == '#') {
      if (table.lines.empty()) table.comment = line;
      continue;
    }
    const std::size_t row = table.rows();
    if (row == 0 && table.names.empty())
      table.delimiter = options.delimiter != 0                                      ? options.delimiter
                        : options.tabs && line.find('\t') != std::string_view::npos ? '\t'
                                                                                    : find_delimiter(content);
    fields.clear();
    splitter.split(line, number, table.delimiter, fields);
    if (fields.size() == options.names.size() + 1 && fields.size() > 1 && fields.back().text.empty()) fields.pop_back();
    if (fields.size() > kMostColumns) splitter.fail(number, 0, "more than 65,536 fields", "a table of time series");
    if (table.columns == 0) table.columns = fields.size();
    if (fields.size() != table.columns)
      splitter.fail(
          number, fields.size() > table.columns ? fields[table.columns].column - 1 : line.size(),
          std::to_string(fields.size()) + " fields", std::to_string(table.columns),
          !options.trajectory ? ""
          : fields.size() == 12
              ? "Twelve numbers per line are a KITTI trajectory: --from kitti, with its times in another file."
              : "A table of other columns is read with --from csv; --skip-lines N leaves out lines above its header.");
    table.fields.insert(table.fields.end(), fields.begin(), fields.end());
    table.lines.push_back(number);
    if (table.rows() == 2) header.decide();
  }
  if (table.rows() == 1) header.decide();
  return table;
}

std::string real_field_text(double value) {
  std::string text = recording::real_text(value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
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
    quoted += c == '\n' || c == '\r' ? ' ' : c;  // the reader takes no line break in a field
  }
  return quoted + '"';
}

}  // namespace tmaops::io
