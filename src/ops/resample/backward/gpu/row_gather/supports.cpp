// What the variant takes.
#include "ops/resample/backward/problem.hpp"

namespace tmaops::ops::resample_backward::row_gather {

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

}  // namespace tmaops::ops::resample_backward::row_gather
