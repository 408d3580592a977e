// What the variant takes.
#include "ops/resample/forward/shared/pieces.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::curve_window {

Support supports(const Problem& problem, const DeviceInfo&) {
  return gpu::supports_dense_rows(problem, 16 * gpu::kMostPieces);
}

}  // namespace tmaops::ops::resample::curve_window
