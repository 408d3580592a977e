// Finds the columns and channels of a recording that a text such as `tx..tz`, `state[3:7]` or `quaternion` names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/column_rules.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// The quaternions and positions that the selectors `quaternion` and `position` name.
struct ColumnRoles {
  std::vector<io::NamedVector> quaternions{};
  std::vector<io::NamedVector> positions{};
};

/// The columns of a recording as the rules of names see them.
io::ColumnView column_view(const io::Recording& recording);
ColumnRoles find_roles(const io::Recording& recording);

/// Reads the selectors of an option:
///   NAME                    a column, with or without its unit in brackets
///   NAME[a:b], NAME[a]      channels a to b - 1 of an array, or channel a
///   A..B                    the columns from A to B
///   3                       a column of a text file by its number, counted from 1 with the time column
///   position, quaternion    every one that is recognised
/// Throws Error usage.
class Selector {
 public:
  /// `option` is its text in messages: "--mode x=linear". Numbers name columns only where `numbers` is true.
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

/// A channel that --columns kept, with its old and its new place.
struct MovedChannel {
  io::ChannelReference from{};
  io::ChannelReference to{};
};
/// The roles of columns that were chosen and renamed: those of their names now, and those of their names before where
/// all components were kept.
ColumnRoles carry_roles(const io::Recording& recording, const ColumnRoles& before,
                        const std::vector<MovedChannel>& moved);

}  // namespace tmaops::cli
