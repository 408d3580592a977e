// What the variant takes.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::bulk_window_walk {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.times != DType::f32) return Support::no("needs f32 times");
  if (size_of(problem.values) != 2) return Support::no("needs 16-bit values");
  if (problem.row_bytes() % (16 * gpu::kWarp) != 0) return Support::no("needs rows of a multiple of 512 bytes");
  return gpu::supports_plain_chunks(problem);
}

}  // namespace tmaops::ops::resample::bulk_window_walk
