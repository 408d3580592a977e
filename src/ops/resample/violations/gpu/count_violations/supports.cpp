// What the variant takes.
#include "ops/resample/violations/problem.hpp"

namespace tmaops::ops::resample_violations::count_violations {

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

}  // namespace tmaops::ops::resample_violations::count_violations
