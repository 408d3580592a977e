// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::persistent {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = gpu::supports_tiles(problem); !support) return support;
  const std::int64_t targets = std::max<std::int64_t>(problem.target, 1);
  if (problem.batch > (std::int64_t{1} << 31) / targets) return Support::no("needs at most 2^31 targets in all");
  return Support::yes();
}

}  // namespace tmaops::ops::resample::persistent
