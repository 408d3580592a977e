// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::element_search {

Support supports(const Problem& problem, const DeviceInfo&) { return gpu::supports_brackets(problem); }

}  // namespace tmaops::ops::resample::element_search
