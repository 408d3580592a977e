// One memory latency instead of two: the rows a tile of targets needs are guessed from its position, and the window of
// stamps and the window of rows are fetched at once by two bulk copies. The warps search the stamps while the rows
// arrive, then read the rows from shared memory. Rows and stamps outside the windows are read from global memory.
// (1024,512->512,128 bf16, jittered: 1.01 times a copy against 1.05 for touched_rows. It also reads rows that are not
// needed, so targets drawn at random cost it 1.09.)
#include <cmath>

#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/window.cuh"

namespace tmaops::ops::resample::bulk_window {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kFlight = 4;

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;
  Held rows;
  alignas(128) unsigned char bytes[64 * 1024];  // stamps, then rows; the launch asks for what the tile needs
};

struct Job {
  Call call;
  Chunks chunks;
  int targets_per_warp;
  int time_margin, row_margin;       // samples
  int stamp_capacity, row_capacity;  // samples
  int rows_at;                       // offset of the rows in Storage::bytes
};

template <class Time, class Value>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage>();
  device::let_next_kernel_start();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  if (threadIdx.x == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int tile = job.targets_per_warp * kWarps;
  const int begin = static_cast<int>(blockIdx.x) * tile;
  const int end = min(begin + tile, of.targets);
  if (begin >= end) return;
  const RowBytes rows = row_bytes<Value>(call, b);
  const int stride = job.chunks.count * 16;
  if (threadIdx.x == 0) {
    const Range near = guess(begin, end, of.samples, of.samples_per_target, job.time_margin, job.stamp_capacity);
    shared.stamps = load_slice(shared.bytes, reinterpret_cast<const unsigned char*>(of.stamps), sizeof(Time), near,
                               call.times_begin, call.times_end, shared.stamps_ready);
    const Range window = guess(begin, end, of.samples, of.samples_per_target, job.row_margin, job.row_capacity);
    shared.rows = load_aligned_slice(shared.bytes + job.rows_at, rows.values, stride, window, shared.rows_ready);
  }

  // Search: one target per lane.
  const int first = begin + device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, end - first);
  const int lane = device::lane_index();
  Time q{};
  if (lane < count) q = target_time<Time>(call.line, b, first + lane);
  __syncthreads();  // barriers are initialised, and known is what the copies hold
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (lane < count) {
    if (of.samples > 0)
      at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + shared.stamps.shift), shared.stamps.range, q);
    write_valid(call, b, first + lane, at.weight);
  }
  const Held window = shared.rows;
  const int local = at.row - window.range.first;
  const bool second = fabsf(at.weight) > 0.0f;  // not of a missing target
  const bool here = local >= 0 && local + (second ? 1 : 0) < window.range.count;
  const unsigned char* held = shared.bytes + job.rows_at + window.shift;
  unsigned char* output = rows.output + static_cast<std::int64_t>(first) * stride;

  // Combine.
  device::wait(shared.rows_ready, 0);
  if (!__all_sync(0xffffffffu, here || lane >= count)) {  // some row is not in the window: from global memory
    write_touched_rows<Value, 2>(rows, job.chunks, at, first, count);
    return;
  }
  const int items = count * job.chunks.count;
  const int first_row = local * stride;
  const int second_row = second ? first_row + stride : first_row;
#pragma unroll kFlight
  for (int base = 0; base < items; base += device::kWarpThreads) {
    const int item = base + lane;
    const int target = job.chunks.row_of(item);
    const int column = (item - target * job.chunks.count) * 16;
    const int from = __shfl_sync(0xffffffffu, first_row, target) + column;
    const int to = __shfl_sync(0xffffffffu, second_row, target) + column;
    const float weight = __shfl_sync(0xffffffffu, at.weight, target);
    if (item < items)
      device::store_16_streaming(output + item * 16, mix_16<Value>(*reinterpret_cast<const uint4*>(held + from),
                                                                   *reinterpret_cast<const uint4*>(held + to), weight));
  }
}

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Tile and windows. Searching costs a warp as much as combining some hundred chunks, so it takes several targets even
/// where that leaves fewer blocks: chunks per thread 1, 2, 4, 8 gave 135, 83, 70, 72 us at 1024,512->512,128 bf16, and
/// 16 is best where rows are used by several targets (256,100->2048,256: 105, 92, 88 for 4, 8, 16).
Job make_job(const Problem& problem, const Call& call, int& shared_bytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const Chunks chunks(row_bytes);
  const int items = call.longest_target >= 2 * problem.longest_source ? 16 : 4;
  const int per_warp = std::clamp(items * device::kWarpThreads / chunks.count, 1, device::kWarpThreads);
  const int tile = per_warp * kWarps;

  const int times = time_margin(problem.longest_source, call.longest_target);
  const int rows = std::min(times, std::max(3, static_cast<int>(2048 / row_bytes)));
  const auto spanned =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(tile) * static_cast<double>(problem.longest_source) /
                                          static_cast<double>(call.longest_target)));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  const auto held = [](std::int64_t samples, std::int64_t bytes, std::int64_t most) {
    return static_cast<int>(std::clamp<std::int64_t>((most - kSliceSlack) / bytes, 0, samples));
  };
  const int stamp_capacity = held(spanned + 3 + 2 * times, time_bytes, 16 * 1024);
  const int rows_at = round_up(stamp_capacity * static_cast<int>(time_bytes) + kSliceSlack, 128);
  const int row_capacity =
      held(spanned + 3 + 2 * rows, row_bytes, static_cast<std::int64_t>(sizeof(Storage::bytes)) - rows_at);
  shared_bytes = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)) + rows_at +
                 round_up(row_capacity * static_cast<int>(row_bytes) + kSliceSlack, 128);
  return {call, chunks, per_warp, times, rows, stamp_capacity, row_capacity, rows_at};
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_windows(problem, device); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  return supports_16_byte_rows(problem);
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  int shared_bytes = 0;
  const Job job = make_job(problem, call, shared_bytes);
  const std::int64_t tile = job.targets_per_warp * kWarps;
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = tile_grid((call.longest_target + tile - 1) / tile, problem.batch),
                            .block = dim3(kThreads),
                            .shared_bytes = shared_bytes,
                            .dependent = arguments.dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>("resample: bulk_window", config, stream, job);
  });
}

}  // namespace tmaops::ops::resample::bulk_window
