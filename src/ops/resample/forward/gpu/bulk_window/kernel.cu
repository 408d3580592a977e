// Any call of 16-byte rows: the rows that a tile of targets needs are guessed from its position, and the window of
// times and the window of rows are fetched at once by two bulk copies.
#include "ops/resample/forward/shared/window_tile.cuh"

namespace tmaops::ops::resample::bulk_window {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Job {
  Call call;
  Tile tile;
};

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads) kernel(const __grid_constant__ Job job) {
  WindowStorage& shared = device::dynamic_shared<WindowStorage, kSite.smem>();
  const int width = job.tile.chunks.count * 16;
  run_window_tile<Time, Value>(
      shared, job.call, job.tile, [&](std::int64_t, const Range& near, const RowBytes& rows, unsigned char* to) {
        const auto bytes = static_cast<std::uint32_t>(near.count * width);
        device::arrive_expect_bytes(shared.rows_ready, bytes);
        if (bytes > 0)
          device::bulk_load(to, rows.values + static_cast<std::int64_t>(near.first) * width, bytes, shared.rows_ready);
      });
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const Tile tile = make_tile(problem, call.longest_target);
  const LaunchShape shape = window_launch(problem, arguments, call, tile);
  with_types(problem,
             [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, Job{call, tile}); });
  return work;
}

}  // namespace tmaops::ops::resample::bulk_window
