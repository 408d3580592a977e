// Runs problems: every implementation is checked, then timed in turn with the others.
#pragma once

#include <span>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "config/settings.hpp"

namespace tmaops::bench {

/// All problems on one device. Throws Error for settings that make no sense; wrong results and refusals are in the
/// report.
Report run(const std::vector<Settings>& problems, Device device, const RunOptions& options, const Observer& observer);

/// Problems whose implementations take their turns in the same rounds.
using Group = std::span<const Settings>;

/// All problems, in their order. On a CPU, problems of one case that follow each other are one group. They mostly
/// differ in type, and the memory of a shared machine varies more from minute to minute than types do. On a GPU each
/// problem is a group, because cold copies fill the GPU's memory. So is each with torch.compile, which keeps the
/// kernels of one problem. Throws Error for settings that make no sense.
std::vector<Group> timing_groups(const std::vector<Settings>& problems, Device device, const RunOptions& options);

}  // namespace tmaops::bench
