// The one table printer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "offers/console.hpp"

namespace tmaops::cli {

struct Cell {
  std::string text{};
  Style style = Style::plain;
};

/// Rows below each other in columns as wide as their widest cell, two spaces apart. A row may be shorter than the
/// others; columns without any text are left out. What is wider than it may be is folded: the columns that do not fit
/// stand on a second line of their row, and the text of a last column on the left is wrapped.
class Table {
 public:
  /// Titles with '|' between them; '>' before one aligns its column to the right.
  explicit Table(std::string_view titles);
  /// Control characters in a cell are printed as \xNN.
  void add(std::vector<Cell> row);
  /// An empty line between groups.
  void add_gap() { rows_.emplace_back(); }
  std::string text(bool color, std::size_t width = kAnyWidth) const;

 private:
  struct Column {
    std::string title;
    bool right;  // aligned to the right
  };
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Width of UTF-8 text on a terminal, counting every character as one column.
std::size_t display_width(std::string_view text);

}  // namespace tmaops::cli
