// Which problems of a run are timed together.
#pragma once

#include <span>
#include <vector>

#include "bench/run/options.hpp"
#include "core/settings.hpp"

namespace tmaops::bench {

/// Problems whose implementations take their turns in the same rounds.
using Group = std::span<const Settings>;

/// All problems, in their order. On a CPU those of one case that follow each other, most often the same data in other
/// types, are one group: the memory of a shared machine varies by more from minute to minute than types differ. Each is
/// one by itself on a GPU, whose memory the copies for cold inputs fill, and with torch.compile, which keeps the
/// kernels of one problem. Throws Error for settings that make no sense.
std::vector<Group> timing_groups(const std::vector<Settings>& problems, Device device, const RunOptions& options);

}  // namespace tmaops::bench
