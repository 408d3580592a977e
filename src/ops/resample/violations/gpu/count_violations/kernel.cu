// Counts on the device what is wrong with times: one thread per timestamp and target, sums per warp, and one addition
// to the counter per warp that found something. Sums of integers, so their order does not matter.
#include "device/warp.cuh"
#include "ops/resample/shared/device_offsets.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/violations/problem.hpp"

namespace tmaops::ops::resample_violations::count_violations {
namespace {

using namespace resample::gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

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
  const std::int64_t targets = line.target_count(b);
  if (targets == 0) return;
  const std::int64_t samples = line.source_count(b);
  const auto* timestamps = line.source.at<const Time>(b);
  const auto timestamp = [&](std::int64_t k) { return __ldg(timestamps + k * line.source.row_stride); };

  // As many blocks as a trajectory of the expected length has, which is the longest one where that is known.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads; first < max(samples, targets);
       first += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t i = first + threadIdx.x;
    const bool sample = i < samples;
    const Time x = sample ? timestamp(i) : Time{};
    const Time earlier = sample && i > 0 ? timestamp(i - 1) : x;
    const bool pair = sample && i > 0;
    add(job, ResampleViolation::source_not_finite, sample && !is_finite(x));
    add(job, ResampleViolation::source_not_sorted, pair && x < earlier);
    add(job, ResampleViolation::source_duplicate, pair && x == earlier && line.duplicates == Duplicates::error);

    const bool target = i < targets;
    const Time q = target ? target_time<Time>(line, b, i) : Time{};
    add(job, ResampleViolation::target_not_finite, target && !is_finite(q));
    add(job, ResampleViolation::target_outside,
        target && samples > 0 && line.outside == Outside::error && (q < timestamp(0) || q > timestamp(samples - 1)));
    add(job, ResampleViolation::empty_trajectory, i == 0 && samples == 0 && line.outside != Outside::nan);
  }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  work.add_memset(arguments.counts, 0, static_cast<std::size_t>(arguments.counters) * sizeof(std::int64_t));
  auto* const counts = reinterpret_cast<unsigned long long*>(arguments.counts);
  constexpr auto kBadOffsets = static_cast<std::int64_t>(ResampleViolation::bad_offsets);
  const Call call = any_offsets_call(
      work, problem, {arguments},
      {.wrong = WrongOffsets::nothing, .counted = arguments.counters > kBadOffsets ? counts + kBadOffsets : nullptr});
  const auto longest_of = [&](bool known, std::int64_t longest, std::int64_t rows) {
    return known ? longest : expected_rows(rows, problem.batch);
  };
  const std::int64_t longest =
      std::max(longest_of(!problem.source_offsets_on_device, problem.longest_source, problem.source),
               longest_of(!problem.target_offsets_on_device, call.longest_target, problem.target));
  if (longest == 0 || problem.batch == 0) return work;
  const LaunchShape shape{.grid = tile_grid((longest + kThreads - 1) / kThreads, problem.batch), .block = kThreads};
  const Job job{call.line, counts};
  resample::visit_time_type(problem.times, [&]<class Time>(Time*) { work.add(kernel<Time>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::resample_violations::count_violations
