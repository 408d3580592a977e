// The gradient to the values without atomics: one warp per sample gathers from the targets around it. Which targets
// these are and their weights follow from the timestamps of the sample and its two neighbours alone, so nothing is
// searched twice and nothing is stored in between. Sums run over the targets in their order, whatever the grid is:
// bit-identical from run to run. Where targets are not sorted, every warp looks at all of them.
#include <bit>

#include "device/vector.cuh"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/device_offsets.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"
#include "ops/resample/shared/warp_count.cuh"

namespace tmaops::ops::resample_backward::row_gather {
namespace {

using namespace resample::gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code
using resample::Timeline;
using Index = std::int64_t;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr Index kLeastSamples = 4;          // per warp: what is found for one helps the next
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

/// The targets of one trajectory.
template <class Time>
struct TargetTimes {
  const Timeline& line;
  Index b;
  Index count;
  __device__ __forceinline__ Time operator()(Index t) const { return target_time<Time>(line, b, t); }
};

/// Whether no target is before the one in front of it; by all threads of the block.
template <class Time>
__device__ __forceinline__ bool sorted(const TargetTimes<Time>& targets) {
  bool ordered = true;
  if (!targets.line.uniform_grid)
    for (Index t = threadIdx.x; t + 1 < targets.count; t += kThreads) ordered = ordered && targets(t) <= targets(t + 1);
  return __syncthreads_and(ordered) != 0;
}

/// A sample and its neighbours.
template <class Time>
struct Sample {
  Index s;
  Index count;  // samples of the trajectory
  Time before, here, after;

  /// The part that sample s has in a target at time q.
  template <class T>
  __device__ __forceinline__ T part(const Timeline& line, Interpolation interpolation, Time q) const {
    const Index last = count > 1 ? count - 2 : 0;
    const Index i = min(max(q >= here ? s : s - 1, Index{0}), last);
    const Time x = i == s ? here : before;
    const Time next = count < 2 ? x : (i == s ? after : here);
    if ((i > 0 && q < x) || (i < last && q >= next)) return 0;  // of other samples
    const Place<Index, T> at = resolve(interpolation, place<T>(line, count, i, x, next, q));
    if (at.weight != at.weight) return 0;
    return at.row == s ? 1 - at.weight : (at.row + 1 == s ? at.weight : T(0));
  }
};

/// Adds what the targets around a sample give to `channels` channels of this lane: add(part, target) in order.
template <class T, class Time, class Add>
__device__ __forceinline__ void for_each_part(const Timeline& line, Interpolation interpolation,
                                              const Sample<Time>& sample, const TargetTimes<Time>& targets, Index begin,
                                              bool ordered, const Add& add) {
  const bool to_the_end = !ordered || sample.s + 2 >= sample.count;
  for (Index t0 = begin; t0 < targets.count; t0 += device::kWarpThreads) {
    const Index t = t0 + device::lane_index();
    T part = 0;
    bool behind = false;
    if (t < targets.count) {
      const Time q = targets(t);
      part = sample.template part<T>(line, interpolation, q);
      behind = q >= sample.after;
    }
    for (unsigned left = __ballot_sync(0xffffffffu, part != 0); left != 0; left &= left - 1) {
      const int from = __ffs(static_cast<int>(left)) - 1;
      add(__shfl_sync(0xffffffffu, part, from), t0 + from);
    }
    if (!to_the_end && __any_sync(0xffffffffu, behind)) return;
  }
}

/// chunks: one group of channels in rows of 16-byte chunks, of the same type on both sides.
enum class RowsAre { chunks, anything };

template <class Time, class In, class Out, RowsAre rows_are>
__global__ void __launch_bounds__(kThreads, 3) kernel(const __grid_constant__ Job job) {
  constexpr bool whole = rows_are == RowsAre::chunks;
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
  const bool ordered = sorted(targets);

  const auto* timestamps = line.source.at<const Time>(b);
  const auto timestamp = [&](Index i) {
    return __ldg(timestamps + min(max(i, Index{0}), samples - 1) * line.source.row_stride);
  };
  const auto* gradient = call.output.at<const In>(b);
  auto* made = call.values.at<Out>(b);
  const int lane = device::lane_index();
  Index begin = 0;
  for (Index s = first; s < end; ++s) {
    const Sample<Time> sample{s, samples, timestamp(s - 1), timestamp(s), timestamp(s + 1)};
    const auto before = [&](Index t) { return targets(t) < sample.before; };
    if (ordered && s >= 2) begin = s == first || s == 2 ? count_by_warp(targets.count, before) : begin;
    if (ordered && s > 2 && s > first)  // from the beginning of the sample in front
      for (unsigned passed = ~0u; passed == ~0u && begin < targets.count;) {
        const Index t = begin + lane;
        passed = __ballot_sync(0xffffffffu, t < targets.count && before(t));
        begin += __popc(passed);
      }
    Out* row = made + s * call.values.row_stride;
    if constexpr (whole) {
      constexpr int values = Unpacked<Out>::count;
      for (Index channel = lane * values;; channel += device::kWarpThreads * values) {
        const bool present = channel < call.channels;
        if (!__any_sync(0xffffffffu, present)) break;
        Unpacked<Out> sum{};
        for_each_part<float>(line, call.interpolation, sample, targets, begin, ordered, [&](float part, Index t) {
          if (!present) return;
          const Unpacked<Out> from = unpack<Out>(device::load_16(gradient + t * call.output.row_stride + channel));
#pragma unroll
          for (int k = 0; k < values; ++k) sum.at[k] = fmaf(part, from.at[k], sum.at[k]);
        });
        if (present) device::store_16_streaming(row + channel, pack(sum));
      }
    } else {
      for (int g = 0; g < call.group_count; ++g) {
        const ChannelGroup group =
            call.group_count == 1 ? ChannelGroup{0, call.channels, call.interpolation} : call.groups[g];
        for (Index base = 0; base < group.count; base += device::kWarpThreads) {
          const bool present = base + lane < group.count;
          const Index channel = group.first + base + lane;
          T sum = 0;
          for_each_part<T>(line, group.interpolation, sample, targets, begin, ordered, [&](T part, Index t) {
            if (present)
              sum = fma(part, widen(gradient[t * call.output.row_stride + channel * call.output.channel_stride]), sum);
          });
          if (present) row[channel * call.values.channel_stride] = narrow<Out>(sum);
        }
      }
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
  const bool chunks = problem.values == problem.output && problem.groups.size() == 1 && problem.unit_channel_stride &&
                      problem.row_alignment >= 16 && problem.row_bytes() % 16 == 0;
  with_any_types(problem, [&]<class Time, class Out>(Time*, Out*) {
    with_any_value_type(problem.output, [&]<class In>(In*) {
      if constexpr (std::is_same_v<In, Out> && sizeof(Out) < 8) {
        if (chunks) return work.add(kernel<Time, In, Out, RowsAre::chunks>, shape, job);
      }
      constexpr bool f64 = sizeof(In) == 8 || sizeof(Out) == 8;
      if constexpr (std::is_same_v<In, Out> || (!f64 && (std::is_same_v<In, float> || std::is_same_v<Out, float>)))
        work.add(kernel<Time, In, Out, RowsAre::anything>, shape, job);
    });
  });
  return work;
}

}  // namespace tmaops::ops::resample_backward::row_gather
