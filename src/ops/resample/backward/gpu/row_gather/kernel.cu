// The gradient to the values without atomics: one warp per sample gathers from the targets around it. Sums run over the
// targets in their order, whatever the grid is: bit-identical from run to run.
#include <bit>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/backward/shared/samples.cuh"
#include "ops/resample/shared/device_offsets.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample_backward::row_gather {
namespace {

using Index = std::int64_t;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr Index kLeastSamples = 4;          // per warp
constexpr Index kBlocksPerTrajectory = 64;  // at most: each looks whether the targets are sorted

struct Job {
  Call call;               // values: grad_values, written; output: grad_output, read
  Index samples_per_warp;  // more where that takes more than 2^warp_shift warps for a trajectory
  int warp_shift;
};

/// So that 2^warp_shift warps take a trajectory.
constexpr Index samples_per_warp(Index samples, int warp_shift, Index least) {
  const Index spread = (samples + (Index{1} << warp_shift) - 1) >> warp_shift;
  return spread > least ? spread : least;
}

template <class Time, class In, class Out>
__global__ void __launch_bounds__(kThreads, 3) kernel(const __grid_constant__ Job job) {
  using T = Arithmetic<Out>;
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& call = job.call;
  const Timeline& line = call.line;
  const Index b = static_cast<Index>(blockIdx.z) * gridDim.y + blockIdx.y;
  if (b >= line.batch) return;
  const Index samples = line.source_count(b);
  const Index per_warp = samples_per_warp(samples, job.warp_shift, job.samples_per_warp);
  const Index tile = per_warp * kWarps;
  if (static_cast<Index>(blockIdx.x) * tile >= samples) return;
  const Index first = static_cast<Index>(blockIdx.x) * tile + device::warp_index() * per_warp;
  const Index end = min(first + per_warp, samples);
  const TargetTimes<Time> targets{line, b, line.target_count(b)};
  const bool ordered = __syncthreads_and(line.uniform_grid || targets.in_order(0, targets.count)) != 0;

  const auto* gradient = call.output.at<const In>(b);
  auto* made = call.values.at<Out>(b);
  for (Index s = first; s < end; ++s) {
    const Sample<Time> sample = sample_of<Time>(line, b, s, samples);
    for (int g = 0; g < call.group_count; ++g) {
      const ChannelGroup group =
          call.group_count == 1 ? ChannelGroup{0, call.channels, call.interpolation} : call.groups[g];
      const auto* from = gradient + group.first * call.output.channel_stride;
      Out* row = made + s * call.values.row_stride + group.first * call.values.channel_stride;
      sum_sample<T>(
          line, group.interpolation, sample, targets, ordered, group.count,
          [&](Index t, Index channel) {
            return widen(from[t * call.output.row_stride + channel * call.output.channel_stride]);
          },
          [&](Index channel, T sum) { row[channel * call.values.channel_stride] = narrow<Out>(sum); });
    }
  }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  if (problem.longest_source == 0 || problem.batch == 0 || problem.channels == 0) return work;
  const Rows& to = arguments.grad_values;
  const Elements gradients{.data = static_cast<unsigned char*>(const_cast<void*>(to.data)),
                           .trajectories = problem.packed_source ? 1 : problem.batch,
                           .rows = problem.source,
                           .channels = problem.channels,
                           .trajectory_stride = to.trajectory_stride,
                           .row_stride = to.row_stride,
                           .channel_stride = to.channel_stride,
                           .size = static_cast<Index>(size_of(problem.values))};
  const Call call = any_offsets_call(
      work, problem, arguments.forward(),
      {.wrong = WrongOffsets::nothing, .poisoned = gradients, .dependent_launch = arguments.dependent_launch});
  const bool known = !problem.source_offsets_on_device;
  const Index longest = known ? problem.longest_source : expected_rows(problem.source, problem.batch);
  constexpr int kMostShift = std::bit_width(static_cast<unsigned>(kBlocksPerTrajectory * kWarps)) - 1;
  const Index per_warp = samples_per_warp(longest, kMostShift, kLeastSamples);
  const Index needed = (longest + per_warp * kWarps - 1) / (per_warp * kWarps);
  const auto tiles = known ? needed : static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(needed)));
  const int warp_shift = known ? kMostShift : std::bit_width(static_cast<std::uint64_t>(tiles * kWarps)) - 1;
  const LaunchShape shape{
      .grid = tile_grid(tiles, problem.batch), .block = kThreads, .dependent = arguments.dependent_launch};
  const Job job{call, per_warp, warp_shift};
  with_any_types(problem, [&]<class Time, class Out>(Time*, Out*) {
    with_any_value_type(problem.output, [&]<class In>(In*) {
      constexpr bool f64 = sizeof(In) == 8 || sizeof(Out) == 8;
      if constexpr (std::is_same_v<In, Out> || (!f64 && (std::is_same_v<In, float> || std::is_same_v<Out, float>)))
        work.add(kernel<Time, In, Out>, shape, job);
    });
  });
  return work;
}

}  // namespace tmaops::ops::resample_backward::row_gather
