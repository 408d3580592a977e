// The messages of `tmaops resample`: how it read the times, what looks wrong, what it did.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/resample.hpp"
#include "cli/resample_input.hpp"
#include "cli/resample_modes.hpp"
#include "cli/resample_output.hpp"
#include "cli/resample_policies.hpp"
#include "cli/resample_targets.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// The steps between neighbouring samples of an episode, in nanoseconds.
struct Steps {
  std::int64_t longest = 0, median = 0, wider_than_gap = 0, zero = 0;
};
Steps measure_steps(const io::Recording& recording, std::int64_t max_gap);

/// How the times of a recording were read.
struct TimeSummary {
  io::TimeColumn column{};
  io::FileFormat format = io::FileFormat::csv;
  std::int64_t first = 0, last = 0, median_step = 0;

  /// "column 'seq' in s, 0 to 20 s, 10 Hz median (the first column, since no name is known; unit assumed)". The options
  /// are those that named the column and its unit.
  std::string text(std::string_view name_option = "--times-array", std::string_view unit_option = "--time-unit") const;
};
TimeSummary summarise_times(const io::Recording& recording, const Steps& steps);

/// "0.5 s", with all decimals that are not 0.
std::string seconds_text(std::int64_t nanoseconds);

/// What looks wrong in the recording itself.
void warn_of_recording(const io::Recording& recording, std::vector<std::string>& warnings);
/// What looks wrong between the recording and the targets.
void warn_of_targets(const ResampleCommand& command, const io::Recording& recording, const ResampleTargets& targets,
                     const Steps& steps, const TargetWindow& window, std::vector<std::string>& warnings);

/// The data of the summary and the JSON.
struct RunFacts {
  io::FileFormat from = io::FileFormat::csv, to = io::FileFormat::csv;
  TimeSummary time{};
  Steps steps{};
  Policies policies{};
  ModePlan plan{};
  std::string pose{};  // of a trajectory
  std::vector<std::string> left_out{};
  std::int64_t samples = 0, missing_rows = 0, moved_rows = 0, episodes = 0;
  std::int64_t targets = 0, snapped = 0, outside = 0, in_gaps = 0, masked = 0, rows = 0;
  std::string targets_file{};
  std::string variant{};
  std::uint64_t bytes = 0;
};
void write_report(const ResampleCommand& command, const RunFacts& facts, ResampleReport& report);

}  // namespace tmaops::cli
