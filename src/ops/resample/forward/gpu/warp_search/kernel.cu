// One warp per target: 32 probes narrow the search by a factor of 33 per round trip, a ballot counts them, and all
// lanes know interval and weight; then the lanes walk along the row with neighbouring accesses, of 16 bytes where rows
// allow it. No shared memory; rows of any stride, width and alignment. warp_shuffle is the published search by one
// lane.
#include "ops/resample/forward/shared/strided_row.cuh"
#include "ops/resample/shared/warp_count.cuh"
#include "ops/resample/shared/window.cuh"

namespace tmaops::ops::resample::warp_search {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpThreads;

struct Job {
  Call call;
  bool chunks;  // rows are multiples of 16 bytes at multiples of 16 bytes
};

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Job job) {
  device::let_next_kernel_start();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  device::wait_for_previous_kernel();
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int t = static_cast<int>(blockIdx.x) * kWarps + device::warp_index();
  if (t >= of.targets) return;

  // Search.
  const std::int64_t stride = call.line.source.row_stride;
  const Time q = target_time<Time>(call.line, b, t);
  Place<int> at{0, missing()};
  if (of.samples > 0) {
    const auto passed = [&](int probe) { return __ldg(of.timestamps + probe * stride) <= q; };
    const int i = earlier_sample(count_by_warp(of.samples, passed), of.samples);
    const Time x = __ldg(of.timestamps + i * stride);
    const Time next = __ldg(of.timestamps + (of.samples > 1 ? i + 1 : i) * stride);
    at = resolve(call.interpolation, place(call.line, of.samples, i, x, next, q));
  }
  const int lane = device::lane_index();
  if (lane == 0) write_valid(call, b, t, at.weight);

  // Combine.
  write_strided_row<Value, device::kWarpThreads>(call, b, t, at, lane, job.chunks);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const Job job{call, problem.row_alignment >= 16 && problem.row_bytes() % 16 == 0};
  const LaunchShape shape = tile_launch(problem, arguments, call.longest_target, kWarps, kThreads);
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::resample::warp_search
