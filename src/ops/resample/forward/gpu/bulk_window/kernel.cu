// Any call of 16-byte rows: one memory latency instead of two. The rows that a tile of targets needs are guessed from
// its position, and the window of times and the window of rows are fetched at once by two bulk copies. The threads
// search the times while the rows arrive, then read the rows from shared memory. Rows and times outside the windows are
// read from global memory.
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/window_rows.cuh"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample::bulk_window {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Held times;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows; the launch asks for what the tile needs
};

struct Job {
  Call call;
  Tile tile;
};

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  const Tile& tile = job.tile;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.times_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int begin = static_cast<int>(blockIdx.x) * tile.targets;
  if (begin >= of.targets) return;
  const int t = begin + target_of_lane(tile.targets_per_warp);
  const bool active = t < of.targets && device::lane_index() < tile.targets_per_warp;
  Time q{};
  if (active) q = target_time<Time>(call.line, b, t);
  const int width = tile.chunks.count * 16;
  const RowBytes rows = row_bytes<Value>(call, b);
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  if (leader) {
    const Slice times = time_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.time_capacity));
    load_slice(shared.bytes, times, shared.times_ready);
    const auto bytes = static_cast<std::uint32_t>(near.count * width);
    device::arrive_expect_bytes(shared.rows_ready, bytes);
    if (bytes > 0)
      device::bulk_load(shared.bytes + tile.rows_at, rows.values + static_cast<std::int64_t>(near.first) * width, bytes,
                        shared.rows_ready);
    shared.times = {times.held, times.shift};
  }

  // Search.
  __syncthreads();  // barriers are initialised
  const Held held = shared.times;
  device::wait(shared.times_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    if (of.samples > 0) at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + held.shift), held.range, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  write_window_rows<Value>(tile.chunks, Window{shared.bytes + tile.rows_at, near, rows, of.samples > 0}, at, t, active);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  if (call.longest_target == 0 || problem.batch == 0) return work;
  const Tile tile = make_tile(problem, call.longest_target);
  const LaunchShape shape{.grid = tile_grid((call.longest_target + tile.targets - 1) / tile.targets, problem.batch),
                          .block = kTileThreads,
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
    work.add(kernel<Time, Value>, shape, Job{call, tile});
  });
  return work;
}

}  // namespace tmaops::ops::resample::bulk_window
