// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/gpu/touched_rows_once/configs.hpp"

namespace tmaops::ops::resample::touched_rows_once {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

namespace {

/// Few targets among many samples.
bool is_sparse(const Problem& problem) { return problem.source >= 3 * problem.target; }

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_row_bytes(problem, 64); !support) return support;
  return supports_plain_lanes(problem);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  // Larger blocks gain where blocks of two calls overlap (docs/findings/resample.md, R13).
  if (problem.dependent_launch && !is_sparse(problem)) return {{.threads = 256}, {.threads = 128}};
  return {{.threads = 128}, {.threads = 256}};
}

PlainCut plain_cut(const Problem& problem, const Config& config) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  const bool sparse = is_sparse(problem);
  PlainCut cut;
  cut.threads = config.threads;
  cut.targets = cut.threads / row;
  cut.spot_bytes = sizeof(Spot);
  const int margin = time_margin(problem.source, problem.target);
  cut.time_margin = 2 + (sparse ? margin * 2 / 3 : margin * (problem.target < problem.source ? 9 : 7) / 24);
  cut.ahead_times = ahead_times_bytes(problem);
  cut.ahead_values = std::min(sparse ? kAheadBytes / 4 : kAheadBytes, problem.batch * problem.source * row * 8);
  return cut;
}

}  // namespace tmaops::ops::resample::touched_rows_once
