// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::touched_rows {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("needs times next to one another");
  if (Support support = gpu::supports_one_weight(problem); !support) return support;
  return gpu::supports_16_byte_rows(problem);
}

}  // namespace tmaops::ops::resample::touched_rows
