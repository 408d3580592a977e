// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::curve_window {

Support supports(const Problem& problem, const DeviceInfo&) {
  return gpu::supports_dense_rows(problem, 2048);  // kMostPieces of 16 bytes
}

}  // namespace tmaops::ops::resample::curve_window
