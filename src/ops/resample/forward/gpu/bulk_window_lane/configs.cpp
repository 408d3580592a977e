// What the variant takes, and how it cuts a call.
#include "ops/resample/forward/gpu/bulk_window_lane/configs.hpp"

namespace tmaops::ops::resample::bulk_window_lane {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared parts

namespace {

int threads_of(int chunks) { return chunks == 2 ? 256 : 128; }

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_plain_lanes(problem); }

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  // Wide rows leave a lane more to load; among the others one chunk per lane wins where there are many blocks.
  const int few = row == 16 || output_chunks(problem) < 1 << 16 ? 2 : 1;
  std::vector<Config> all{{.chunks = row >= 32 ? 4 : std::min(few, row)}};
  for (const int chunks : {1, 2, 4})
    if (chunks <= row && row / chunks <= threads_of(chunks) && chunks != all.front().chunks)
      all.push_back({.chunks = chunks});
  return all;
}

PlainCut plain_cut(const Problem& problem, const Config& config) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  PlainCut cut;
  cut.threads = threads_of(config.chunks);
  cut.lanes = row / config.chunks;
  cut.targets = cut.threads / cut.lanes;
  cut.time_margin = time_margin(problem.source, problem.target);
  cut.rows = Rows16::in_shared;
  cut.row_margin = std::min(cut.time_margin, row == 8 ? 8 : 4);
  return cut;
}

}  // namespace tmaops::ops::resample::bulk_window_lane
