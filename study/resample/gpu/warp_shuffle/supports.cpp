// What the variant takes.
#include "study/resample/shared/held_times.hpp"

namespace tmaops::ops::resample::warp_shuffle {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_held_times(problem); }

}  // namespace tmaops::ops::resample::warp_shuffle
