// Which columns and channels of a recording a text such as `tx..tz`, `state[3:7]` or `quaternion` names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/column_rules.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// The quaternions and positions that `quaternion` and `position` stand for.
struct ColumnRoles {
  std::vector<io::NamedVector> quaternions{};
  std::vector<io::NamedVector> positions{};
};

/// The columns of a recording as the rules of names see them.
io::ColumnView column_view(const io::Recording& recording);
ColumnRoles find_roles(const io::Recording& recording);

/// Reads selectors of one option's text. A selector is a column's name, with or without its unit in brackets;
/// NAME[a:b], channels a to b - 1 of an array, or NAME[a]; A..B, the columns from A to B, by name or by number (from 1,
/// as in a text file, the time column counted); position and quaternion. Throws Error usage.
class Selector {
 public:
  /// `option` is what messages name: "--mode x=linear". Numbers name columns only where `numbers`.
  Selector(const io::Recording& recording, const ColumnRoles& roles, std::string option, bool numbers = true)
      : recording_(recording), roles_(roles), option_(std::move(option)), numbers_(numbers) {}

  std::vector<io::ChannelReference> select(const std::string& text) const;
  /// The column of this name, exactly or without its unit.
  std::optional<std::size_t> find(const std::string& name) const;
  /// True for NAME[a:b] and NAME[a] of a column that there is.
  bool is_slice(const std::string& text) const;
  std::vector<io::ChannelReference> all_channels(std::size_t column) const;
  [[noreturn]] void fail(std::string got, std::string needed) const;

 private:
  std::optional<std::size_t> find_or_number(const std::string& text) const;
  std::vector<io::ChannelReference> slice(std::size_t column, const std::string& text) const;

  const io::Recording& recording_;
  const ColumnRoles& roles_;
  std::string option_;
  bool numbers_;
};

/// The roles of columns that were chosen and renamed: those their names say now, and those that their names said before
/// where all components are still there. `moved` has the new place of each old channel, where it has one.
struct MovedChannel {
  io::ChannelReference from{};
  io::ChannelReference to{};
};
ColumnRoles carry_roles(const io::Recording& recording, const ColumnRoles& before,
                        const std::vector<MovedChannel>& moved);

/// The parts of a list with commas.
std::vector<std::string> split_list(const std::string& text);

}  // namespace tmaops::cli
