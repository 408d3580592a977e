// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::warp_search {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_one_weight(problem); }

}  // namespace tmaops::ops::resample::warp_search
