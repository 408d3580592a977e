// Loads the rows that are needed and no others. A block takes a tile of consecutive targets of one trajectory: it
// stages a window of stamps with one round of loads, its warps search their own targets in there, one per lane, and
// then combine their rows, several pairs of 16-byte loads in flight per lane. Two memory latencies, whatever the
// stamps. (1024,512->512,128 bf16: 1.05 times a copy, where one block per trajectory with all stamps staged took 1.26.)
#include <bit>
#include <cmath>

#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/window.cuh"

namespace tmaops::ops::resample::touched_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kWindow = 1024;  // stamps
constexpr int kFlight = 4;     // 2: 13.4 instead of 13.2 us at 256,500->250,128

struct Job {
  Call call;
  Chunks chunks;
  int targets_per_warp;
  int margin;
};

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads, 8) kernel(const __grid_constant__ Job job) {
  __shared__ Time window[kWindow];
  device::let_next_kernel_start();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  device::wait_for_previous_kernel();

  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int tile = job.targets_per_warp * kWarps;
  const int begin = static_cast<int>(blockIdx.x) * tile;
  const int end = min(begin + tile, of.targets);
  if (begin >= end) return;

  const Range range = guess(begin, end, of.samples, of.samples_per_target, job.margin, kWindow);
  const int first = begin + device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, end - first);
  const int lane = device::lane_index();
  Time q{};
  if (lane < count) q = target_time<Time>(call.line, b, first + lane);
  stage_stamps(window, of, range, kThreads);
  __syncthreads();

  Place<int> at{0, missing()};
  if (lane < count) {
    if (of.samples > 0) at = locate(call, of, window, range, q);
    write_valid(call, b, first + lane, at.weight);
  }
  write_touched_rows<Value, kFlight>(row_bytes<Value>(call, b), job.chunks, at, first, count);
}

/// About 4,096 warps, the 32 per multiprocessor that fit, and at least one chunk per lane. (Targets per warp 4, 8, 16,
/// 32: 15.4, 10.4, 7.6, 8.6 us at 64,4096->1024,32; 128, 98, 90, 86 at 1024,512->512,128.) A power of two: with 15
/// instead of 16 the last round of loads is nearly empty, 20.4 instead of 16.1 us at 256,500->250,128.
int targets_per_warp(std::int64_t targets, int chunks) {
  const auto wanted = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(targets / 4096)));
  return static_cast<int>(
      std::clamp<std::int64_t>(wanted, std::max(2, device::kWarpThreads / chunks), device::kWarpThreads));
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_windows(problem, device); !support) return support;
  return supports_16_byte_rows(problem);
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const Chunks chunks(problem.channels * static_cast<std::int64_t>(size_of(problem.values)));
  const int targets =
      targets_per_warp(problem.packed_target ? problem.target : problem.batch * problem.target, chunks.count);
  const Job job{call, chunks, targets, time_margin(problem.longest_source, call.longest_target)};
  const std::int64_t tile = targets * kWarps;
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = tile_grid((call.longest_target + tile - 1) / tile, problem.batch),
                            .block = dim3(kThreads),
                            .dependent = arguments.dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>("resample: touched_rows", config, stream, job);
  });
}

}  // namespace tmaops::ops::resample::touched_rows
