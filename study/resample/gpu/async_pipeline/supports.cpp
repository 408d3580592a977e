// What the variant takes.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::async_pipeline {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_plain_chunks(problem); }

}  // namespace tmaops::ops::resample::async_pipeline
