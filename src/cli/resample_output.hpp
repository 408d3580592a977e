// The recording that `tmaops resample` writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/resample_modes.hpp"
#include "cli/resample_policies.hpp"
#include "cli/resample_table.hpp"
#include "cli/resample_targets.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// Fate of every target.
struct Selection {
  std::vector<std::int64_t> kept{};
  std::vector<std::int64_t> offsets{0};  // of the kept ones, per episode
  std::int64_t outside = 0;
  std::int64_t in_gaps = 0;  // the masked ones among them
};

Selection select_rows(const io::Recording& recording, const ResampleTargets& targets, const ResampledTable& table,
                      const Policies& policies);

/// Throws Error target_outside or bad_parameter when no target at all has data.
void check_something_left(const ResampleCommand& command, const io::Recording& recording,
                          const ResampleTargets& targets, const ResampledTable& table, const Selection& selection,
                          const Policies& policies);

io::Recording make_output(io::Recording&& recording, const ResampleTargets& targets, const ModePlan& plan,
                          const ResampledTable& table, const Selection& selection, bool with_valid);

/// A TUM or KITTI trajectory needs one pose. Renames the position and the quaternion that `roles` found to tx ty tz qx
/// qy qz qw, unless columns have these names already. Returns what it took, for the summary; nothing where there was
/// nothing to do. Throws Error bad_parameter when there are several poses.
std::string name_pose(io::Recording& recording, const ColumnRoles& roles);

}  // namespace tmaops::cli
