#include "cli/table.hpp"

#include <algorithm>

namespace tmaops::cli {

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string Table::text(bool color) const {
  if (rows_.empty()) return "";
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].text));
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (widths[i] > 0) widths[i] = std::max(widths[i], display_width(columns_[i].title));

  std::string all;
  const auto add_line = [&](const std::vector<Cell>& row) {
    std::string line;
    std::size_t pending = 0;  // spaces before the next cell, so that no line ends with some
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::size_t space = widths[i] - display_width(row[i].text);
      const bool right = columns_[i].align == Align::right;
      if (!row[i].text.empty()) {
        line.append(pending + (right ? space : 0), ' ');
        line += styled(row[i].text, row[i].style, color);
        pending = right ? 0 : space;
      } else {
        pending += widths[i];
      }
      pending += 2;
    }
    all += line + "\n";
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Style::bold});
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return all;
}

}  // namespace tmaops::cli
