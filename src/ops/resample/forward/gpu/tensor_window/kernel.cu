// Reproduces the published "option A": the rows of a tile come by cp.async.bulk.tensor.2d through a tensor map of all
// rows of the call, {channels, samples}, as one box. Nothing of it was published but the instruction. All else is as in
// bulk_window, which copies the same rows by one bulk copy. It differs from the published lines in the barrier, since
// cuda::barrier's arrive_and_wait() does not wait for the bytes of a copy. A box has one size: near the end of a
// trajectory it may bring rows that nobody reads.
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "device/tensor_copy.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/window_rows.cuh"
#include "ops/resample/shared/slice.cuh"
#include "tmaops/tensor_map.hpp"

namespace tmaops::ops::resample::tensor_window {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Held times;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows; the launch asks for what the tile needs
};

struct Job {
  tma::TensorMap rows;
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
    device::prefetch_tensor_map(&job.rows);
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
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  if (leader) {
    const Slice times = time_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.time_capacity));
    load_slice(shared.bytes, times, shared.times_ready);
    const auto first = static_cast<int>(call.values.first(b) / call.channels) + near.first;
    device::arrive_expect_bytes(shared.rows_ready,
                                static_cast<std::uint32_t>(tile.row_capacity * tile.chunks.count * 16));
    device::tensor_load<2>(shared.bytes + tile.rows_at, &job.rows, {0, first}, shared.rows_ready);
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
  write_window_rows<Value>(
      tile.chunks, Window{shared.bytes + tile.rows_at, near, row_bytes<Value>(call, b), of.samples > 0}, at, t, active);
}

/// All rows of the values: those of trajectory b begin at its first element / channels.
tma::TensorMap map_of(const Problem& problem, const Arguments& arguments, const Tile& tile) {
  const std::int64_t rows = (problem.packed_source ? 0 : (problem.batch - 1) * problem.values_stride / problem.channels) +
                            problem.source;
  tma::TensorMapSpec spec =
      tma::tiled_spec(tma::element_type(problem.values), {problem.channels, rows}, {problem.channels, tile.row_capacity});
  spec.address = reinterpret_cast<std::uintptr_t>(arguments.values.data);
  spec.l2_promotion = tma::L2Promotion::b128;
  return tma::encode(spec, problem.device.index);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  constexpr int kMostBox = 256;  // rows
  Work work(kSite, problem.device);
  const Call call = device_call(work, problem, arguments);
  if (call.longest_target == 0 || problem.batch == 0) return work;
  Tile tile = make_tile(problem, call.longest_target);
  tile.row_capacity = std::min(tile.row_capacity, kMostBox);
  const LaunchShape shape{.grid = tile_grid((call.longest_target + tile.targets - 1) / tile.targets, problem.batch),
                          .block = kTileThreads,
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  const tma::TensorMap rows = map_of(problem, arguments, tile);
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
    work.add(kernel<Time, Value>, shape, Job{rows, call, tile});
  });
  return work;
}

}  // namespace tmaops::ops::resample::tensor_window
