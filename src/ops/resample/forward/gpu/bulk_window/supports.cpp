// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::bulk_window {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_tiles(problem); }

}  // namespace tmaops::ops::resample::bulk_window
