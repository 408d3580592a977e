// Reproduces the published persistent grid without TMA: a fixed number of blocks per multiprocessor (its configuration;
// published: 2) loops over tiles of targets. A block brings the timestamps of a tile's trajectory to shared memory, and
// its eight warps take the targets in turn, as in warp_shuffle. It differs in the tile: 256 targets of one trajectory
// per block. Published, each warp has 256 targets. Warps of several trajectories then share one array of timestamps,
// and most of the output is never written.
#include "core/device_info.hpp"
#include "ops/resample/forward/shared/strided_row.cuh"
#include "study/resample/shared/held_times.cuh"

namespace tmaops::ops::resample::persistent_warp {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kTile = 256;  // targets

struct Job {
  Call call;
  std::int64_t tiles;  // per trajectory
};

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Job job) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& call = job.call;
  auto* times = reinterpret_cast<Time*>(device::dynamic_shared<HeldTimes, kSite.smem>().bytes);
  const int lane = device::lane_index();
  for (std::int64_t item = blockIdx.x; item < job.tiles * call.line.batch; item += gridDim.x) {
    const std::int64_t b = item / job.tiles;
    const Trajectory<Time> of = trajectory<Time>(call, b);
    const int begin = static_cast<int>(item - b * job.tiles) * kTile;
    hold_times(times, call, of);
    for (int t = begin + device::warp_index(); t < min(begin + kTile, of.targets); t += kWarps) {
      const Place<int> at = place_by_first_lane(call, of.samples, times, target_time<Time>(call.line, b, t));
      if (lane == 0) write_valid(call, b, t, at.weight);
      write_strided_row<Value, device::kWarpThreads>(call, b, t, at, lane, false);
    }
    __syncthreads();  // all warps are done with the timestamps
  }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const std::int64_t tiles = (call.longest_target + kTile - 1) / kTile;
  const std::int64_t resident = std::int64_t{config.blocks} * device_info(problem.device).multiprocessors;
  const LaunchShape shape{.grid = static_cast<unsigned>(std::min(tiles * problem.batch, resident)),
                          .block = kThreads,
                          .shared_bytes = held_time_bytes(problem),
                          .dependent = arguments.dependent_launch};
  with_types(problem,
             [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, Job{call, tiles}); });
  return work;
}

}  // namespace tmaops::ops::resample::persistent_warp
