// Which column of a recording is interpolated how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/recording.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::cli {

/// One number of a row: channel `channel` of column `column`.
struct ChannelReference {
  std::size_t column = 0;
  std::int64_t channel = 0;
};

/// Channels of real numbers that are interpolated together: any number, or the four of one quaternion for slerp.
struct ModeGroup {
  Interpolation interpolation = Interpolation::linear;
  std::vector<ChannelReference> channels{};
};

struct ModePlan {
  std::vector<ModeGroup> groups{};
  /// Per column that is not of real numbers: previous, next or nearest. Such columns are copied sample by sample.
  std::vector<Interpolation> whole_columns{};  // index: column; linear for columns of real numbers
  /// "tx: linear", one line per column or part of one, for the summary.
  std::vector<std::pair<std::string, std::string>> summary{};
};

/// Applies the defaults and then the user's "SELECTOR=MODE" or "MODE" in order. A SELECTOR is a comma list of: a
/// column's name; NAME[a:b], channels a to b - 1 of an array; A..B, the columns from A to B, by name or by number (from
/// 1, as in a csv file, the time column counted); position and quaternion for the columns usually named so; *. Throws
/// Error usage (unknown selector or mode), bad_column_mode, bad_quaternion.
ModePlan plan_modes(const io::Recording& recording, const std::vector<std::string>& modes);

}  // namespace tmaops::cli
