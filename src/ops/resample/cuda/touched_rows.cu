// Loads the rows that are needed and no others. A block takes a tile of consecutive targets of one trajectory: it
// stages a window of stamps with one round of loads, its warps search their own targets in there, one per lane, and
// then combine their rows, several pairs of 16-byte loads in flight per lane. Two memory latencies, whatever the
// stamps. (1024,512->512,128 bf16: 1.05 times a copy, where one block per trajectory with all stamps staged took 1.26.)
#include <bit>
#include <cmath>

#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"

namespace tmaops::ops::resample::touched_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 256;
constexpr int kWindow = 1024;  // stamps
constexpr int kFlight = 4;     // 2: up to 2 % slower or faster

/// How a problem is cut: targets per warp (at most 32), warps per block.
struct Choice {
  int targets_per_warp = 16;
  int warps = 4;
  int margin = 4;
};

template <class AnyCall>
struct Job {
  AnyCall call;
  Chunks chunks;
  int targets_per_warp;
  int margin;
  int capacity;  // samples
};

template <class Time, class Value, class AnyCall>
__global__ void __launch_bounds__(kMaxThreads, 4) kernel(const __grid_constant__ Job<AnyCall> job) {
  constexpr bool plain = std::is_same_v<AnyCall, PlainCall>;
  __shared__ Time window[kWindow];
  device::let_next_kernel_start();
  const AnyCall& call = job.call;
  const std::int64_t b = block_trajectory(call);
  if (!plain && b >= batch_of(call)) return;
  device::wait_for_previous_kernel();

  const Trajectory<Time> of = trajectory<Time>(call, b);
  const auto threads = static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(blockIdx.x) * (threads / device::kWarpThreads * job.targets_per_warp);
  if (!plain && begin >= of.targets) return;

  const int first = begin + device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, of.targets - first);
  const int lane = device::lane_index();
  Time q{};
  if (lane < count) q = target_time<Time>(call, b, first + lane);
  const Range range = guess(of.pace, begin, of.samples, job.margin, job.capacity);
  stage_stamps(window, of, range, threads);
  __syncthreads();

  Place<int> at{0, missing()};
  if (lane < count) {
    if (plain || of.samples > 0) at = locate(call, of, window, range, q);
    write_valid(call, b, first + lane, at.weight);
  }
  write_touched_rows<Value, kFlight>(row_bytes<Value>(call, b, job.chunks.count * 16), job.chunks, at, first, count,
                                    plain || of.samples > 0);
}

/// About 4,096 warps, the 32 per multiprocessor that fit, with at most eight chunks per lane (1024,512->512,128: 8, 16,
/// 32 targets per warp 72, 70, 72 us; 64,1000->500,512: 2, 4, 8 targets 24.4, 24.3, 25.3). A power of two: with 15
/// instead of 16 the last round of loads is nearly empty, 20.4 instead of 16.1 us at 256,500->250,128.
Choice choose(const Problem& problem, const Call& call, int chunks) {
  const std::int64_t targets = problem.packed_target ? problem.target : problem.batch * problem.target;
  const auto wanted = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(targets / 4096)));
  const int least = std::max(2, device::kWarpThreads / chunks);
  Choice choice;
  choice.targets_per_warp = static_cast<int>(std::clamp<std::int64_t>(
      wanted, least, std::max(least, std::min(device::kWarpThreads, 8 * device::kWarpThreads / chunks))));
  choice.warps = chunks <= 4 ? 8 : 4;
  choice.margin = time_margin(problem.longest_source, call.longest_target);
  return choice;
}

void run(const Problem& problem, const Call& call, const Choice& choice, bool dependent_launch, Stream stream) {
  const Chunks chunks(problem.channels * static_cast<std::int64_t>(size_of(problem.values)));
  const int tile = choice.targets_per_warp * choice.warps;
  const int capacity = window_capacity(problem, call.longest_target, tile, choice.margin, kWindow);
  const LaunchConfig config{.grid = tile_grid((call.longest_target + tile - 1) / tile, problem.batch),
                            .block = dim3(static_cast<unsigned>(choice.warps * device::kWarpThreads)),
                            .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    with_call(problem, call, [&](const auto& any) {
      using AnyCall = std::remove_cvref_t<decltype(any)>;
      launch_kernel<kernel<Time, Value, AnyCall>>(
          "resample: touched_rows", config, stream,
          Job<AnyCall>{any, chunks, choice.targets_per_warp, choice.margin, capacity});
    });
  });
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
  const CurrentDevice current(problem.device.index);
  const auto chunks = static_cast<int>(problem.channels * static_cast<std::int64_t>(size_of(problem.values)) / 16);
  run(problem, call, choose(problem, call, chunks), arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::touched_rows
