// Runs problems: every implementation is checked, then timed in turn with the others.
#pragma once

#include <vector>

#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "config/settings.hpp"

namespace tmaops::bench {

/// All problems on one device. Throws Error for settings that make no sense; wrong results and refusals are in the
/// report.
Report run(const std::vector<Settings>& problems, Device device, const RunOptions& options, const Observer& observer);

}  // namespace tmaops::bench
