// Which problems of a run are timed together.
#pragma once

#include <span>
#include <vector>

#include "bench/run/options.hpp"
#include "config/settings.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Problems whose implementations take their turns in the same rounds.
using Group = std::span<const Settings>;

/// All problems, in their order. On a CPU, problems of one case that follow each other are one group. They mostly
/// differ in type, and the memory of a shared machine varies more from minute to minute than types do. On a GPU each
/// problem is a group, because cold copies fill the GPU's memory. So is each with torch.compile, which keeps the
/// kernels of one problem. Throws Error for settings that make no sense.
std::vector<Group> timing_groups(const std::vector<Settings>& problems, Device device, const RunOptions& options);

}  // namespace tmaops::bench
