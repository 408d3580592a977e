// What the variant takes, and how many blocks it may have on a multiprocessor.
#include "study/resample/shared/held_times.hpp"

namespace tmaops::ops::resample::persistent_warp {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_held_times(problem); }

std::vector<Config> configs(const Problem&, const DeviceInfo&) {
  return {{.blocks = 2}, {.blocks = 1}, {.blocks = 4}, {.blocks = 8}};
}

}  // namespace tmaops::ops::resample::persistent_warp
