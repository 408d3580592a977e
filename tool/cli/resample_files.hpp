// What `tmaops resample` does beside src/recording: which files it reads and writes, and what it prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/resample.hpp"
#include "io/recording.hpp"
#include "recording/run.hpp"

namespace tmaops::cli {

using recording::ChannelReference;
using recording::ColumnRoles;
using recording::Run;
using recording::seconds_text;

// --- resample_output.cpp: the recording that is written --------------------------------------------------------------
/// Writes what `resample --plot` draws into `folder`: before.npz has the samples, after.npz every target, in gaps and
/// outside too. The arrays are the times in nanoseconds, the columns, the offsets of the episodes, and behind the
/// targets whether they are valid.
void write_plot_data(const std::filesystem::path& folder, const io::Recording& recording, const Run& run);

/// Renames the position and the quaternion of `roles` to tx ty tz qx qy qz qw, as a TUM or KITTI trajectory needs them,
/// unless columns have these names already. Returns a line for the summary, which is empty when nothing was renamed.
/// Throws Error bad_parameter when there are several poses.
std::string name_pose(io::Recording& recording, const ColumnRoles& roles);

// --- resample_report.cpp: what was done ------------------------------------------------------------------------------
/// The data of the summary and the JSON.
struct RunFacts {
  io::FileFormat from, to;
  const Run& run;
  std::string targets{};  // the file of --times or --like, and how it was read
  std::string pose{};     // of a trajectory
  std::vector<std::string> left_out{};
  std::uint64_t bytes = 0;
};
void write_report(const ResampleCommand& command, const RunFacts& facts, ResampleReport& report);

}  // namespace tmaops::cli
