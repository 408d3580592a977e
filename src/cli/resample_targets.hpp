// The times that `tmaops resample` resamples to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/resample.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// Target times of all episodes one after the other, and where each episode's start.
struct ResampleTargets {
  std::vector<std::int64_t> times{};         // nanoseconds
  std::vector<std::int64_t> sample_times{};  // the times of the values: `times`, or a sample's within --snap
  std::vector<std::int64_t> offsets{};       // episodes + 1
  std::int64_t snapped = 0;                  // how many of them differ
  std::string file{};                        // of --times or --like: "FILE, column 't' in s"; else empty
  std::vector<std::string> warnings{};       // of reading it
};

/// --start, --end and --snap in nanoseconds.
struct TargetWindow {
  std::optional<std::int64_t> start{};
  std::optional<std::int64_t> end{};
  std::int64_t snap = 0;
};
/// Throws Error bad_parameter, usage.
TargetWindow parse_window(const ResampleCommand& command);

/// From --hz (per episode: the grid begins at its first timestamp, or at --start, or with --align at a multiple of the
/// period; point i lies i / hz later, rounded to the nanosecond; up to the last timestamp or --end), --times or --like
/// (the same for every episode, those from --start to --end). Throws Error bad_parameter, usage, and what reading the
/// file throws.
ResampleTargets make_targets(const ResampleCommand& command, const TargetWindow& window,
                             const io::Recording& recording);

}  // namespace tmaops::cli
