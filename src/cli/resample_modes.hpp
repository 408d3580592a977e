// The interpolation of every column of a recording.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/resample_selectors.hpp"
#include "io/column_rules.hpp"
#include "io/recording.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::cli {

using io::ChannelReference;

/// Channels of real numbers that are interpolated together: any number of them, the four of one quaternion for slerp,
/// or one angle.
struct ModeGroup {
  Interpolation interpolation = Interpolation::linear;
  std::vector<ChannelReference> channels{};
  std::optional<io::AngleRule> angle{};
};

struct ModePlan {
  std::vector<ModeGroup> groups{};
  /// Per column that is not of real numbers: previous, next or nearest. Such columns are copied sample by sample.
  std::vector<Interpolation> whole_columns{};  // index: column; linear for columns of real numbers
  /// "tx: linear", one line per column or part of one, for the summary.
  std::vector<std::pair<std::string, std::string>> summary{};
  /// Quaternions by the names of their columns, and the order of their components.
  std::vector<std::pair<std::string, std::string>> quaternions{};
  std::vector<std::string> notes{};
  std::vector<std::string> warnings{};
};

/// Applies the defaults and then the user's "SELECTOR,SELECTOR=MODE" or "MODE" in order. A SELECTOR is one of the
/// class Selector, or * for every column that can have the mode. Columns of whole numbers of a text file that are part
/// of a quaternion or position, or that get linear, cubic, slerp or angle by name, become real numbers in the
/// recording. Throws Error usage (unknown selector or mode), bad_column_mode, bad_quaternion.
ModePlan plan_modes(io::Recording& recording, const ColumnRoles& roles, const std::vector<std::string>& modes,
                    bool numbers = true);

}  // namespace tmaops::cli
