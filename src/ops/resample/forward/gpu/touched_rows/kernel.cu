// Any call of 16-byte rows: loads the rows that are needed and no others. A block takes a tile of consecutive targets
// of one trajectory: a window of times is copied to shared memory and searched, then each warp loads the rows of its
// own targets, several pairs of 16-byte loads in flight per lane. Two memory latencies, whatever the times.
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/touched_rows.cuh"
#include "ops/resample/shared/bracket.cuh"

namespace tmaops::ops::resample::touched_rows {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kWindow = 1024;  // times
constexpr int kFlight = 4;     // loads

/// Copies the times of a range to shared memory with ordinary loads, all threads of the block together; four loads are
/// in flight before the first store. The caller synchronises.
template <class Time>
__device__ __forceinline__ void stage_times(Time* window, const Trajectory<Time>& of, Range range, int threads) {
  constexpr int kFlight = 4;
  for (int base = static_cast<int>(threadIdx.x); base < range.count; base += threads * kFlight) {
    Time loaded[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (base + k * threads < range.count) loaded[k] = __ldg(of.timestamps + range.first + base + k * threads);
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (base + k * threads < range.count) window[base + k * threads] = loaded[k];
  }
}

struct Job {
  Call call;
  Chunks chunks;
  int targets_per_warp;
  int margin;
  int capacity;  // samples
};

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads, 8) kernel(const __grid_constant__ Job job) {
  auto& window = device::block_shared<Time[kWindow]>();
  device::let_next_kernel_start();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  device::wait_for_previous_kernel();

  const Trajectory<Time> of = trajectory<Time>(call, b);
  const auto threads = static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(blockIdx.x) * (threads / device::kWarpThreads * job.targets_per_warp);
  if (begin >= of.targets) return;

  const int first = begin + device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, of.targets - first);
  const int lane = device::lane_index();
  Time q{};
  if (lane < count) q = target_time<Time>(call.line, b, first + lane);
  const Range range = guess(of.pace, begin, of.samples, job.margin, job.capacity);
  stage_times(window, of, range, threads);
  __syncthreads();

  Place<int> at{0, missing()};
  if (lane < count) {
    if (of.samples > 0) at = locate(call, of, window, range, q);
    write_valid(call, b, first + lane, at.weight);
  }
  write_touched_rows<Value, kFlight>(row_bytes<Value>(call, b), job.chunks, at, first, count, of.samples > 0);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const int per_warp = targets_per_warp(problem);
  const int margin = time_margin(problem.longest_source, call.longest_target);
  const int tile = per_warp * kTileThreads / kWarp;
  const int capacity = window_capacity(problem, call.longest_target, tile, margin, kWindow);
  const Job job{call, chunks_of(problem.row_bytes()), per_warp, margin, capacity};
  const LaunchShape shape = tile_launch(problem, arguments, call.longest_target, tile, kTileThreads);
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::resample::touched_rows
