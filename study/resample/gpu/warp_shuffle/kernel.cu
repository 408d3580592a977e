// Reproduces the published search by warps: lane 0 of a warp searches the timestamps in shared memory and works out the
// weight once, __shfl_sync tells the other lanes, and the lanes stride along the row value by value. It differs in the
// grid: a warp has one target, where the published kernel is persistent (persistent_warp is that), so that the search
// stands alone. The eight warps of a block have targets of one trajectory and share its timestamps.
#include "ops/resample/forward/shared/strided_row.cuh"
#include "study/resample/shared/held_times.cuh"

namespace tmaops::ops::resample::warp_shuffle {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpThreads;

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const Trajectory<Time> of = trajectory<Time>(call, b);
  auto* times = reinterpret_cast<Time*>(device::dynamic_shared<HeldTimes, kSite.smem>().bytes);
  hold_times(times, call, of);
  const int t = static_cast<int>(blockIdx.x) * kWarps + device::warp_index();
  if (t >= of.targets) return;

  const int lane = device::lane_index();
  const Place<int> at = place_by_first_lane(call, of.samples, times, target_time<Time>(call.line, b, t));
  if (lane == 0) write_valid(call, b, t, at.weight);
  write_strided_row<Value, device::kWarpThreads>(call, b, t, at, lane, false);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const LaunchShape shape =
      tile_launch(problem, arguments, call.longest_target, kWarps, kThreads, held_time_bytes(problem));
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, call); });
  return work;
}

}  // namespace tmaops::ops::resample::warp_shuffle
