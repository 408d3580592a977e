// What the variant takes, and how it can run that.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::touched_rows_lane {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

Support supports(const Problem& problem, const DeviceInfo&) { return supports_plain_lanes(problem); }

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  // More chunks per lane where there is more to write than to read: fewer lanes search.
  const bool many = row >= 16 && problem.target >= (row == 16 ? 1 : 4) * problem.source;
  const int best = row > 64 ? 4 : std::min(row, is_sparse(problem) ? 1 : (many ? 4 : 2));
  return lane_configs(row, best, [](int chunks, int row_chunks) {
    if (chunks == 4) return row_chunks == 16 ? 64 : 128;
    return chunks == 2 && row_chunks <= 4 ? 64 : 128;
  });
}

}  // namespace tmaops::ops::resample::touched_rows_lane
