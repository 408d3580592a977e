// The recording that `tmaops resample` works on: sorted, without rows that have no data, with the chosen columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/resample.hpp"
#include "cli/resample_selectors.hpp"
#include "cli/resample_table.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

struct ResampleInput {
  io::Recording recording{};
  ColumnRoles roles{};
  MissingRows missing{};
  std::int64_t rows = 0;   // of the file
  std::int64_t moved = 0;  // rows that --sort moved
  bool has_mask = false;   // there is a column `valid`
};

/// Throws what reading throws, and Error usage for --columns.
ResampleInput read_input(const ResampleCommand& command, const io::ReadOptions& options);

/// Keeps and renames columns. `list` has SELECTOR, NEW=SELECTOR, and * for all other columns, separated by commas.
/// Returns the new places of the channels.
std::vector<MovedChannel> select_columns(io::Recording& recording, const ColumnRoles& roles, const std::string& list);

}  // namespace tmaops::cli
