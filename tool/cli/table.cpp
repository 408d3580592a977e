#include "offers/table.hpp"

#include <algorithm>

#include "core/display.hpp"
#include "core/spelling.hpp"

namespace tmaops::cli {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

namespace {

constexpr std::size_t kGap = 2;            // spaces between columns
constexpr std::size_t kIndent = 4;         // of a folded line
constexpr std::size_t kShortestText = 24;  // a narrower last column goes to a line of its own

/// Columns first to last, without last.
struct Fold {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t indent = 0;
};

/// What a cell has on each line.
std::vector<std::string> pieces(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string_view rest = text;
  while (display_width(rest) > width) {
    std::size_t end = rest.rfind(' ', width);
    if (end == std::string_view::npos || end == 0) end = rest.find(' ');  // a word longer than that
    if (end == std::string_view::npos) break;
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  lines.emplace_back(rest);
  return lines;
}

}  // namespace

Table::Table(std::string_view titles) {
  for (const std::string& title : split_list(std::string(titles), '|')) {
    const bool right = title.starts_with('>');
    columns_.push_back({title.substr(right ? 1 : 0), right});
  }
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) {
    cell.text = display_lines(cell.text);
    std::ranges::replace(cell.text, '\n', ' ');
  }
  rows_.push_back(std::move(row));
}

std::string Table::text(bool color, std::size_t width) const {
  if (rows_.empty()) return "";
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].text));
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (widths[i] > 0) widths[i] = std::max(widths[i], display_width(columns_[i].title));

  std::size_t text_column = widths.size();  // the last one, where its text may be wrapped
  while (text_column > 0 && widths[text_column - 1] == 0) --text_column;
  text_column = text_column > 0 && !columns_[text_column - 1].right ? text_column - 1 : widths.size();

  std::vector<Fold> folds{{}};
  std::size_t used = 0;  // of the line, with the gap after its last column
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::size_t least = i == text_column ? std::min(widths[i], kShortestText) : widths[i];
    if (used > folds.back().indent && used + least > width) {
      folds.push_back({i, i, kIndent});
      used = kIndent;
    }
    if (i == text_column && used + widths[i] > width)
      widths[i] = width > used + kShortestText ? width - used : kShortestText;
    folds.back().last = i + 1;
    used += widths[i] + kGap;
  }

  std::string all;
  const auto add_fold = [&](const Fold& fold, const std::vector<Cell>& row) {
    std::string line;
    std::size_t pending = fold.indent;  // spaces before the next cell, so that no line ends with some
    std::size_t start = fold.indent;    // of the column
    for (std::size_t i = fold.first; i < std::min(fold.last, row.size()); ++i) {
      if (widths[i] == 0) continue;
      const bool right = columns_[i].right;
      if (row[i].text.empty()) {
        pending += widths[i];
      } else if (i == text_column) {
        line.append(pending, ' ');
        const auto lines = pieces(row[i].text, widths[i]);
        for (const std::string& piece : lines)
          line += (&piece == lines.data() ? "" : "\n" + std::string(start, ' ')) + styled(piece, row[i].style, color);
      } else {
        const std::size_t space = widths[i] - display_width(row[i].text);
        line.append(pending + (right ? space : 0), ' ');
        line += styled(row[i].text, row[i].style, color);
        pending = right ? 0 : space;
      }
      pending += kGap;
      start += widths[i] + kGap;
    }
    if (!line.empty()) all += line + "\n";
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Style::bold});
  for (const Fold& fold : folds) add_fold(fold, titles);
  for (const auto& row : rows_) {
    const std::size_t before = all.size();
    for (const Fold& fold : folds) add_fold(fold, row);
    if (all.size() == before) all += "\n";  // a gap
  }
  return all;
}

}  // namespace tmaops::cli
