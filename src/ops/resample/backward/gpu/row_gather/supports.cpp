// What the variant takes.
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample_backward::row_gather {

Support supports(const Problem& problem, const DeviceInfo&) { return resample::gpu::supports_brackets(problem); }

}  // namespace tmaops::ops::resample_backward::row_gather
