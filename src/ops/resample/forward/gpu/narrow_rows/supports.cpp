// What the variant takes.
#include "ops/resample/forward/shared/narrow.hpp"

namespace tmaops::ops::resample::narrow_rows {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_narrow(problem); }

}  // namespace tmaops::ops::resample::narrow_rows
