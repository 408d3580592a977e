// Counts on the device what is wrong with times: one thread per stamp and target, sums per warp, and one addition to
// the counter per warp that found something. Sums of integers, so their order does not matter.
#include "device/warp.cuh"
#include "ops/resample/cuda/call.cuh"
#include "ops/resample/cuda/timeline.cuh"
#include "ops/resample/problem_violations.hpp"

namespace tmaops::ops::resample_violations::count_violations {
namespace {

using namespace resample::cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 256;

struct Job {
  Timeline line;
  unsigned long long* counts;
};

__device__ __forceinline__ bool is_finite(float time) { return isfinite(time); }
__device__ __forceinline__ bool is_finite(double time) { return isfinite(time); }
__device__ __forceinline__ bool is_finite(std::int64_t) { return true; }

/// Adds the number of lanes that found a violation; all lanes of the warp call it.
__device__ __forceinline__ void add(const Job& job, ResampleViolation violation, bool found) {
  const unsigned lanes = __ballot_sync(0xffffffffu, found);
  if (lanes != 0 && device::lane_index() == 0)
    atomicAdd(job.counts + static_cast<int>(violation), static_cast<unsigned long long>(__popc(lanes)));
}

template <class Time>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Job job) {
  const Timeline& line = job.line;
  const std::int64_t b = static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
  if (b >= line.batch) return;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t targets = line.target_count(b);
  if (targets == 0) return;
  const std::int64_t samples = line.source_count(b);
  const auto* stamps = static_cast<const Time*>(line.source.data) + line.source.first(b);
  const auto stamp = [&](std::int64_t k) { return __ldg(stamps + k * line.source.row_stride); };

  const bool sample = i < samples;
  const Time x = sample ? stamp(i) : Time{};
  const Time earlier = sample && i > 0 ? stamp(i - 1) : x;
  const bool pair = sample && i > 0;
  add(job, ResampleViolation::source_not_finite, sample && !is_finite(x));
  add(job, ResampleViolation::source_not_sorted, pair && x < earlier);
  add(job, ResampleViolation::source_duplicate, pair && x == earlier && line.duplicates == Duplicates::error);

  const bool target = i < targets;
  const Time q = target ? target_time<Time>(line, b, i) : Time{};
  add(job, ResampleViolation::target_not_finite, target && !is_finite(q));
  add(job, ResampleViolation::target_outside,
      target && samples > 0 && line.outside == Outside::error && (q < stamp(0) || q > stamp(samples - 1)));
  add(job, ResampleViolation::empty_trajectory, i == 0 && samples == 0 && line.outside != Outside::nan);
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  resample::Arguments times;
  times.timeline = arguments.timeline;
  return prepare_call(problem, times);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = static_cast<const Prepared*>(arguments.prepared.get())->call;
  const CurrentDevice current(problem.device.index);
  check_cuda(cudaMemsetAsync(arguments.counts, 0, kResampleViolations * sizeof(std::int64_t),
                             static_cast<cudaStream_t>(stream)),
             "resample_violations: counts");
  const std::int64_t longest = std::max(problem.longest_source, call.longest_target);
  if (longest == 0 || problem.batch == 0) return;
  const std::int64_t y = std::min<std::int64_t>(problem.batch, 65535);
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>((longest + kThreads - 1) / kThreads),
                                         static_cast<unsigned>(y), static_cast<unsigned>((problem.batch + y - 1) / y)),
                            .block = dim3(kThreads)};
  const Job job{call.line, reinterpret_cast<unsigned long long*>(arguments.counts)};
  if (problem.times == DType::f32)
    launch_kernel<kernel<float>>(kSite, config, stream, job);
  else if (problem.times == DType::f64)
    launch_kernel<kernel<double>>(kSite, config, stream, job);
  else
    launch_kernel<kernel<std::int64_t>>(kSite, config, stream, job);
}

}  // namespace tmaops::ops::resample_violations::count_violations
