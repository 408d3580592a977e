// What the variant takes, and how it can run that.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::touched_rows_block {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

Support supports(const Problem& problem, const DeviceInfo&) { return supports_plain_chunks(problem); }

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  if (problem.times != DType::f32) return {{.chunks = 2}};
  // Short calls want many blocks, long ones many loads in flight per thread.
  if (output_chunks(problem) < kLongCall) return {{.chunks = 1}, {.chunks = 2}};
  return {{.chunks = 2}, {.chunks = 1}};
}

}  // namespace tmaops::ops::resample::touched_rows_block
