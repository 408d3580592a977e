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

/// The targets that are written, and how many lie outside or in gaps.
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

/// Renames the position and the quaternion of `roles` to tx ty tz qx qy qz qw, as a TUM or KITTI trajectory needs them,
/// unless columns have these names already. Returns a line for the summary, which is empty when nothing was renamed.
/// Throws Error bad_parameter when there are several poses.
std::string name_pose(io::Recording& recording, const ColumnRoles& roles);

}  // namespace tmaops::cli
