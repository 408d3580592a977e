// What the variant takes.
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/sizes.hpp"

namespace tmaops::ops::resample_backward::window_gather {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.values != problem.output) return Support::no("needs both gradients of one type");
  if (problem.groups.size() > 1) return Support::no("needs one interpolation for all channels");
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  if (Support support = resample::gpu::supports_rows(problem); !support) return support;
  return resample::gpu::supports_row_bytes(problem, 2048);
}

}  // namespace tmaops::ops::resample_backward::window_gather
