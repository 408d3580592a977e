// Any call of rows of any number of bytes, up to 128: one thread per target. Windows of times and rows come by two bulk
// copies as in bulk_window, rounded outwards to 16 bytes. A thread reads its two neighbouring rows from shared memory
// and leaves the result in its warp's strip, which has the 16-byte phase of the output, so that the warp stores it in
// chunks.
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/narrow_row.cuh"
#include "ops/resample/shared/bracket.cuh"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample::narrow_rows {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Held times;
  Held rows;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows, strips; the launch asks for what the tile needs
};

struct Job {
  Call call;
  NarrowCut cut;
};

template <class Time, class Value>
__global__ void __launch_bounds__(kMostNarrowThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  const NarrowCut& cut = job.cut;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) init_barriers(shared);
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int begin = static_cast<int>(blockIdx.x) * cut.tile;
  const int end = min(begin + cut.tile, of.targets);
  if (begin >= end) return;
  const int t = begin + static_cast<int>(threadIdx.x);
  const bool active = t < end;
  Time q{};
  if (active) q = target_time<Time>(call.line, b, t);
  const int width = cut.row_bytes;
  const RowBytes rows = row_bytes<Value>(call, b);
  if (leader) {
    const Slice time_copy = time_slice(call, of, guess(of.pace, begin, of.samples, cut.time_margin, cut.time_capacity));
    const Slice row_copy =
        row_slice(call, rows.values, width, guess(of.pace, begin, of.samples, cut.row_margin, cut.row_capacity));
    load_slice(array_of(shared.bytes, kFirstArray), time_copy, shared.times_ready);
    load_slice(array_of(shared.bytes, cut.rows), row_copy, shared.rows_ready);
    shared.times = {time_copy.held, time_copy.shift};
    shared.rows = {row_copy.held, row_copy.shift};
  }

  // Search: one target per thread.
  __syncthreads();  // barriers are initialised
  const Held times = shared.times;
  const Held window = shared.rows;
  device::wait(shared.times_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    const auto* held = reinterpret_cast<const Time*>(array_of(shared.bytes, kFirstArray) + times.shift);
    if (of.samples > 0) at = locate(call, of, held, times.range, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  const int first = begin + device::warp_index() * device::kWarpThreads;
  unsigned char* warp_output = rows.output + static_cast<std::int64_t>(first) * width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(warp_output) & 15);
  unsigned char* strip = array_of(shared.bytes, cut.strips) + device::warp_index() * cut.strip_bytes;
  const int row = at.row - window.range.first;
  if (active)
    combine_target<Value, 0>(cut, strip + phase + device::lane_index() * width,
                             array_of(shared.bytes, cut.rows) + window.shift + row * width,
                             row >= 0 && row + (at.weight != 0.0f ? 1 : 0) < window.range.count,
                             rows.values + static_cast<std::int64_t>(at.row) * width, at.weight);
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(warp_output, strip, phase, targets * width);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const NarrowCut cut = make_narrow_cut(problem, call.longest_target, 0, kNarrowThreads, false);
  const LaunchShape shape = tile_launch(problem, arguments, call.longest_target, cut.tile, kNarrowThreads,
                                        static_cast<int>(offsetof(Storage, bytes)) + cut.shared_end);
  with_types(problem,
             [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, Job{call, cut}); });
  return work;
}

}  // namespace tmaops::ops::resample::narrow_rows
