// Every interpolation, also several in one row: PCHIP, slerp and groups of channels at little more than the cost of
// linear. Windows of times and rows come by two bulk copies as in bulk_window. One thread locates a target and leaves
// what all its channels need in shared memory; then the warps make rows in pieces of 16 bytes. Only the search knows
// the type of the times, so there are two kernels per type of values and not one per combination.
#include "device/shared_memory.cuh"
#include "ops/resample/forward/gpu/curve_window/pieces.cuh"
#include "ops/resample/shared/bracket.cuh"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample::curve_window {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBlocks = 7;            // per multiprocessor, at least: 72 registers
constexpr int kMostRows = 40 * 1024;  // bytes of the window of rows

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Held times, rows;
  alignas(128) unsigned char bytes[96 * 1024];  // spots, pieces, timestamps, rows, strips: as much as the tile needs
};

/// The spots stand first in shared memory.
constexpr SharedArray<CurveSpot> kSpots{};

struct Job {
  Call call;
  Pieces pieces;
  Chunks chunks;        // pieces of a row
  int channels, width;  // values and bytes of a row
  int targets_per_warp, time_margin, row_margin;
  int time_capacity, row_capacity;
  SharedArray<Piece> kinds;
  SharedArray<unsigned char> times, rows, strips;
  int strip_bytes, shared_end;
};

/// Fetches the windows and writes the spots of targets [begin, begin + count), one per thread.
template <class Time>
__device__ __forceinline__ void locate_targets(const Job& job, Storage& shared, std::int64_t b, int begin, int count,
                                               bool leader, const unsigned char* values) {
  const Trajectory<Time> of = trajectory<Time>(job.call, b);
  const auto mine = static_cast<int>(threadIdx.x);
  Time q{};
  if (mine < count) q = target_time<Time>(job.call.line, b, begin + mine);
  if (leader) {
    const Slice times = time_slice(job.call, of, guess(of.pace, begin, of.samples, job.time_margin, job.time_capacity));
    load_slice(array_of(shared.bytes, job.times), times, shared.times_ready);
    const Slice near =
        row_slice(job.call, values, job.width, guess(of.pace, begin, of.samples, job.row_margin, job.row_capacity));
    load_slice(array_of(shared.bytes, job.rows), near, shared.rows_ready);
    shared.times = {times.held, times.shift};
    shared.rows = {near.held, near.shift};
  }
  __syncthreads();  // barriers are initialised, and known is what the copies hold
  const Held times = shared.times;
  const Range held = shared.rows.range;
  device::wait(shared.times_ready, 0);
  if (mine >= count) return;
  const auto* window = reinterpret_cast<const Time*>(array_of(shared.bytes, job.times) + times.shift);
  Place<int> at{0, missing()};
  Neighbours around;
  if (of.samples > 0) {
    at = locate(job.call, of, window, times.range, q);
    const auto timestamp = [&](int i) {
      const int local = i - times.range.first;
      return local >= 0 && local < times.range.count ? window[local] : __ldg(of.timestamps + i);
    };
    if (fabsf(at.weight) > 0.0f) around = neighbours<int, Time>(job.call.line, timestamp, of.samples, at.row);
  }
  write_valid(job.call, b, begin + mine, at.weight);
  const bool two = fabsf(at.weight) > 0.0f;
  const int row = at.row - held.first;
  const int lowest = row - (two && around.before >= 0.0f ? 1 : 0);
  const int highest = row + (two ? 1 : 0) + (two && around.after >= 0.0f ? 1 : 0);
  array_of(shared.bytes, kSpots)[mine] = make_spot(row, at, around, lowest >= 0 && highest < held.count);
}

template <class Value, RowsAre rows_are>
__global__ void __launch_bounds__(kThreads, kBlocks) kernel(const __grid_constant__ Job job) {
  constexpr bool whole = rows_are == RowsAre::chunks;
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) init_barriers(shared);
  Piece* pieces = array_of(shared.bytes, job.kinds);
  for (int k = static_cast<int>(threadIdx.x); k < job.chunks.count; k += kThreads) pieces[k] = job.pieces.at[k];
  device::wait_for_previous_kernel();

  // Fetch and search.
  const int tile = job.targets_per_warp * kWarps;
  const int begin = static_cast<int>(blockIdx.x) * tile;
  const int targets = min(static_cast<int>(call.line.target_count(b)) - begin, tile);
  if (targets <= 0) return;
  const RowBytes rows = row_bytes<Value>(call, b);
  visit_time_type(call.line.dtype, [&]<class Time>(Time*) {
    locate_targets<Time>(job, shared, b, begin, targets, leader, rows.values);
  });
  __syncthreads();  // spots are there

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  constexpr int values = Unpacked<Value>::count;
  const Held near = shared.rows;
  const unsigned char* held = &shared.bytes[job.rows.at] + near.shift;  // by array_of() eight bytes are spilled
  const CurveSpot* spots = array_of(shared.bytes, kSpots);
  const int first = device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, targets - first);
  unsigned char* output = rows.output + static_cast<std::int64_t>(begin + first) * job.width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
  unsigned char* strip = array_of(shared.bytes, job.strips) + device::warp_index() * job.strip_bytes;
  const int items = count * job.chunks.count;
  for (int item = device::lane_index(); item < items; item += device::kWarpThreads) {
    const int target = row_of(job.chunks, item);
    const int column = item - target * job.chunks.count;
    const CurveSpot& spot = spots[first + target];
    const Piece piece = pieces[column];
    const unsigned char* from = held + spot.row * job.width + column * 16;
    if constexpr (whole) {
      if (spot.has(static_cast<std::uint32_t>(piece.kind))) {
        device::store_16_streaming(output + item * 16, make_piece<Value>(from, job.width, piece.kind, spot));
        continue;
      }
    }
    if (!spot.has(CurveSpot::kHeld))
      from = rows.values + static_cast<std::int64_t>(spot.row + near.range.first) * job.width + column * 16;
    unsigned char* to = whole ? output + item * 16 : strip + phase + target * job.width + column * 16;
    write_values<Value>(to, from, job.width, min(job.channels - column * values, values), piece.modes, spot.weight,
                        spot.flags, spot.around.before, spot.around.after);
  }
  if constexpr (!whole) {
    __syncwarp();
    if (count > 0) store_strip<Value>(output, strip, phase, count * job.width);
  }
}

Job make_job(const Problem& problem, const Call& call, RowsAre rows_are) {
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Job job{};
  job.call = call;
  job.call.interpolation = Interpolation::linear;  // places keep their weights; the pieces say what becomes of them
  job.pieces = pieces_of(problem);
  job.channels = static_cast<int>(problem.channels);
  job.width = static_cast<int>(problem.row_bytes());
  job.chunks = chunks_of(round_up(job.width, 16));
  // A lane has about eight pieces to make, and a block's window of rows stays small.
  job.targets_per_warp = std::clamp(8 * kWarp / job.chunks.count, 2, kWarp);
  const int tile = job.targets_per_warp * kWarps;
  job.time_margin = time_margin(problem.longest_source, call.longest_target);
  job.row_margin = std::min(job.time_margin, std::max(4, 2048 / job.width));
  job.time_capacity = window_capacity(problem, call.longest_target, tile, job.time_margin, kMostTimeBytes / time_bytes);
  job.row_capacity = window_capacity(problem, call.longest_target, tile, job.row_margin, kMostRows / job.width);
  job.strip_bytes = rows_are == RowsAre::chunks ? 0 : (job.targets_per_warp * job.width + 31) / 16 * 16;
  SharedLayout layout;
  layout.add<CurveSpot>(tile);
  job.kinds = layout.add<Piece>(job.chunks.count);
  job.times = layout.add<unsigned char>(slice_bytes(job.time_capacity, time_bytes));
  job.rows = layout.add<unsigned char>(slice_bytes(job.row_capacity, job.width));
  job.strips = layout.add<unsigned char>(kWarps * job.strip_bytes);
  job.shared_end = layout.end;
  return job;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  Problem one_group = problem;  // the pieces say what the groups are: no table of them on the device
  one_group.groups.resize(1);
  const Call call = device_call(work, one_group, arguments);
  const RowsAre rows_are = supports_16_byte_rows(problem) ? RowsAre::chunks : RowsAre::any_bytes;
  const Job job = make_job(problem, call, rows_are);
  const int shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + job.shared_end;
  const LaunchShape shape =
      tile_launch(problem, arguments, call.longest_target, job.targets_per_warp * kWarps, kThreads, shared_bytes);
  with_value_type(problem.values, [&]<class Value>(Value*) {
    if (rows_are == RowsAre::chunks)
      work.add(kernel<Value, RowsAre::chunks>, shape, job);
    else
      work.add(kernel<Value, RowsAre::any_bytes>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::resample::curve_window
