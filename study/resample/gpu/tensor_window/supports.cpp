// What the variant takes.
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample::tensor_window {

Support supports(const Problem& problem, const DeviceInfo&) {
  constexpr std::int64_t kMostBox = 256;               // elements along a dimension of a box
  constexpr std::int64_t kMostRows = (1LL << 31) - 1;  // a coordinate has 32 bits
  if (Support support = gpu::supports_tiles(problem); !support) return support;
  if (problem.channels > kMostBox) return Support::no("needs rows of at most 256 values, the limit of a box");
  if (problem.longest_source == 0) return Support::no("needs at least one sample");
  if (problem.values_stride < 0 || problem.values_stride % problem.channels != 0)
    return Support::no("needs trajectories a whole number of rows apart, in the order of their addresses");
  if (problem.values_stride / problem.channels * problem.batch + problem.source > kMostRows)
    return Support::no("needs fewer than 2^31 samples in all");
  return Support::yes();
}

}  // namespace tmaops::ops::resample::tensor_window
