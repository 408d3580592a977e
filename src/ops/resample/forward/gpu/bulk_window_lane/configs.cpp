// What the variant takes, and how it can run that.
#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::bulk_window_lane {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

Support supports(const Problem& problem, const DeviceInfo&) { return supports_plain_lanes(problem); }

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  // Wide rows leave a lane more to load; among the others one chunk per lane wins where there are many blocks.
  const int few = row == 16 || output_chunks(problem) < 1 << 16 ? 2 : 1;
  return lane_configs(row, row >= 32 ? 4 : std::min(few, row), [](int chunks, int) { return chunks == 2 ? 256 : 128; });
}

}  // namespace tmaops::ops::resample::bulk_window_lane
