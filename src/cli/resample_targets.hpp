// The times that `tmaops resample` resamples to.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/resample.hpp"
#include "io/recording.hpp"

namespace tmaops::cli {

/// Target times of all episodes one after the other, and where each episode's start.
struct ResampleTargets {
  std::vector<std::int64_t> times{};    // nanoseconds
  std::vector<std::int64_t> offsets{};  // episodes + 1
};

/// From --hz (per episode: its first stamp + i / hz, rounded to the nanosecond, up to its last stamp), --times or
/// --like (the same for every episode). Throws Error bad_parameter, usage, and what reading the file throws.
ResampleTargets make_targets(const ResampleCommand& command, const io::Recording& recording);

}  // namespace tmaops::cli
