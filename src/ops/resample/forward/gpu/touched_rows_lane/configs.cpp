// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/gpu/touched_rows_lane/configs.hpp"

namespace tmaops::ops::resample::touched_rows_lane {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

namespace {

int threads_of(int chunks, int row) {
  if (chunks == 4) return row == 16 ? 64 : 128;
  return chunks == 2 && row <= 4 ? 64 : 128;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_plain_lanes(problem); }

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  // More chunks per lane where there is more to write than to read: fewer lanes search.
  const bool many = row >= 16 && problem.target >= (row == 16 ? 1 : 4) * problem.source;
  const int best = row > 64 ? 4 : std::min(row, is_sparse(problem) ? 1 : (many ? 4 : 2));
  std::vector<Config> all{{.chunks = best}};
  for (const int chunks : {1, 2, 4})
    if (chunks <= row && row / chunks <= threads_of(chunks, row) && chunks != best) all.push_back({.chunks = chunks});
  return all;
}

PlainCut plain_cut(const Problem& problem, const Config& config) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  return touched_rows_cut(problem, threads_of(config.chunks, row), row / config.chunks);
}

}  // namespace tmaops::ops::resample::touched_rows_lane
