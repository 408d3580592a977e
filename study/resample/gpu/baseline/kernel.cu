// Reproduces the published baseline: a block of 256 threads per target, which brings all timestamps of the trajectory
// to shared memory. Every thread searches them. Then the threads stride along the row, 16 bytes at a time. It differs
// in two points: it takes rows of any width and alignment, value by value where they are not whole chunks, and 48 KiB
// of timestamps instead of 4,096.
#include "ops/resample/forward/shared/strided_row.cuh"
#include "study/resample/shared/held_times.cuh"

namespace tmaops::ops::resample::baseline {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;

struct Job {
  Call call;
  bool chunks;  // rows are multiples of 16 bytes at multiples of 16 bytes
};

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Job job) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int t = static_cast<int>(blockIdx.x);
  if (t >= of.targets) return;
  auto* times = reinterpret_cast<Time*>(device::dynamic_shared<HeldTimes, kSite.smem>().bytes);
  hold_times(times, call, of);

  // Search.
  const Time q = target_time<Time>(call.line, b, t);
  Place<int> at{0, missing()};
  if (of.samples > 0) {
    const auto time = [&](int i) { return times[i]; };
    const int i = earlier_sample(count_until<int>(time, 0, of.samples, q), of.samples);
    at = resolve(call.interpolation, place(call.line, of.samples, i, times[i], times[min(i + 1, of.samples - 1)], q));
  }
  if (threadIdx.x == 0) write_valid(call, b, t, at.weight);

  // Combine.
  write_strided_row<Value, kThreads>(call, b, t, at, static_cast<int>(threadIdx.x), job.chunks);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const Job job{call, problem.row_alignment >= 16 && problem.row_bytes() % 16 == 0};
  const LaunchShape shape = tile_launch(problem, arguments, call.longest_target, 1, kThreads, held_time_bytes(problem));
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::resample::baseline
