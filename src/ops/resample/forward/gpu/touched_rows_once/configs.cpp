// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::touched_rows_once {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_row_bytes(problem, 64); !support) return support;
  return supports_plain_lanes(problem);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  // Larger blocks gain where blocks of two calls overlap (docs/findings/resample.md, R13).
  if (problem.dependent_launch && !is_sparse(problem)) return {{.threads = 256}, {.threads = 128}};
  return {{.threads = 128}, {.threads = 256}};
}

}  // namespace tmaops::ops::resample::touched_rows_once
