// What the variant takes.
#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample::element_search {

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

}  // namespace tmaops::ops::resample::element_search
