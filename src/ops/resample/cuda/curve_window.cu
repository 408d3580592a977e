// Every interpolation, also several in one row: PCHIP, slerp and groups of channels at little more than the cost of
// linear. Windows of stamps and rows come by two bulk copies as in bulk_window. One thread locates a target and leaves
// what all its channels need in shared memory; then the warps make rows in pieces of 16 bytes. Rows that are no
// multiples of 16 bytes go through a strip in shared memory. Long calls with one curve for all channels walk along the
// targets instead (curve_walk.cuh). The type of the times is left behind with the search: two
// kernels per type of values, where one per combination made an object of 43 MB.
#include "ops/resample/cuda/curve_walk.cuh"
#include "ops/resample/cuda/pieces.cuh"
#include "ops/resample/cuda/tile_plan.cuh"

namespace tmaops::ops::resample::curve_window {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kBlocks = 7;                     // per multiprocessor, at least: 72 registers
constexpr int kLongestRow = 16 * kMostPieces;  // bytes
constexpr int kMostRows = 40 * 1024;           // bytes of the window of rows

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;
  Held rows;
  Needed needed[kWalkTargets / device::kWarpThreads];
  alignas(128) unsigned char bytes[96 * 1024];  // spots, pieces, stamps, rows, strips: as much as the tile needs
};

struct Job {
  Call call;
  Pieces pieces;
  Chunks chunks;  // pieces of a row
  int channels;
  int width;  // bytes of a row
  int targets_per_warp;
  int time_margin, row_margin;
  int stamp_capacity, row_capacity;
  int most_stamp_bytes, most_row_bytes;
  int pieces_at, stamps_at, rows_at, strips_at, strip_bytes;
};

/// Fetches the windows and writes the spots of targets [begin, begin + count), one per thread.
template <class Time>
__device__ __forceinline__ void locate_targets(const Job& job, Storage& shared, std::int64_t b, int begin, int count,
                                               bool leader, const unsigned char* values) {
  const Trajectory<Time> of = trajectory<Time>(job.call, b);
  const auto mine = static_cast<int>(threadIdx.x);
  Time q{};
  if (mine < count) q = target_time<Time>(job.call, b, begin + mine);
  if (leader) {
    const Slice stamps = stamp_slice(
        job.call, of, guess(of.pace, begin, of.samples, job.time_margin, job.stamp_capacity), job.most_stamp_bytes);
    load_slice(shared.bytes + job.stamps_at, stamps, shared.stamps_ready);
    const Slice near =
        row_slice(job.call, values, job.width, guess(of.pace, begin, of.samples, job.row_margin, job.row_capacity),
                  job.most_row_bytes);
    load_slice(shared.bytes + job.rows_at, near, shared.rows_ready);
    shared.stamps = {stamps.held, stamps.shift};
    shared.rows = {near.held, near.shift};
  }
  __syncthreads();  // barriers are initialised, and known is what the copies hold
  const Held stamps = shared.stamps;
  const Range held = shared.rows.range;
  device::wait(shared.stamps_ready, 0);
  if (mine >= count) return;
  const auto* window = reinterpret_cast<const Time*>(shared.bytes + job.stamps_at + stamps.shift);
  Place<int> at{0, missing()};
  Neighbours around;
  if (of.samples > 0) {
    at = locate(job.call, of, window, stamps.range, q);
    const auto stamp = [&](int i) {
      const int local = i - stamps.range.first;
      return local >= 0 && local < stamps.range.count ? window[local] : __ldg(of.stamps + i);
    };
    if (fabsf(at.weight) > 0.0f) around = neighbours<int, Time>(job.call.line, stamp, of.samples, at.row);
  }
  write_valid(job.call, b, begin + mine, at.weight);
  const bool two = fabsf(at.weight) > 0.0f;
  const int row = at.row - held.first;
  const int lowest = row - (two && around.before >= 0.0f ? 1 : 0);
  const int highest = row + (two ? 1 : 0) + (two && around.after >= 0.0f ? 1 : 0);
  reinterpret_cast<CurveSpot*>(shared.bytes)[mine] = make_spot(row, at, around, lowest >= 0 && highest < held.count);
}

/// `whole`: rows are multiples of 16 bytes at multiples of 16 bytes.
template <class Value, bool whole>
__global__ void __launch_bounds__(kThreads, kBlocks) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory(call);
  if (b >= batch_of(call)) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  auto* pieces = reinterpret_cast<Piece*>(shared.bytes + job.pieces_at);
  for (int k = static_cast<int>(threadIdx.x); k < job.chunks.count; k += kThreads) pieces[k] = job.pieces.at[k];
  device::wait_for_previous_kernel();

  // Fetch and search.
  const int tile = job.targets_per_warp * kWarps;
  const int begin = static_cast<int>(blockIdx.x) * tile;
  const int targets = min(static_cast<int>(call.line.target_count(b)) - begin, tile);
  if (targets <= 0) return;
  const RowBytes rows = row_bytes<Value>(call, b, job.width);
  if (call.line.dtype == DType::f32)
    locate_targets<float>(job, shared, b, begin, targets, leader, rows.values);
  else if (call.line.dtype == DType::f64)
    locate_targets<double>(job, shared, b, begin, targets, leader, rows.values);
  else
    locate_targets<std::int64_t>(job, shared, b, begin, targets, leader, rows.values);
  __syncthreads();  // spots are there

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  constexpr int values = Unpacked<Value>::count;
  const Held near = shared.rows;
  const unsigned char* held = shared.bytes + job.rows_at + near.shift;
  const auto* spots = reinterpret_cast<const CurveSpot*>(shared.bytes);
  const int first = device::warp_index() * job.targets_per_warp;
  const int count = min(job.targets_per_warp, targets - first);
  unsigned char* output = rows.output + static_cast<std::int64_t>(begin + first) * job.width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
  unsigned char* strip = shared.bytes + job.strips_at + device::warp_index() * job.strip_bytes;
  const int items = count * job.chunks.count;
  for (int item = device::lane_index(); item < items; item += device::kWarpThreads) {
    const int target = job.chunks.row_of(item);
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

/// PCHIP or slerp for all channels of a plain call.
template <class Value, class Walk>
__global__ void __launch_bounds__(kWalkThreads, kWalkBlocks) walk_kernel(const __grid_constant__ WalkTile walk) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const PlainTile& tile = walk.tile;
  const auto thread = static_cast<int>(threadIdx.x);
  const PlainBlock block = plain_block<float>(tile);
  if (thread == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch, with a guess of the rows, and search.
  const Range guess{block.first_row, tile.row_capacity};
  float q{};
  if (thread < block.targets) q = plain_target<float>(tile, block, thread);
  if (thread == 0) {
    fetch_stamps(tile, block, shared.bytes, shared.stamps_ready);
    fetch_rows(tile, block, guess, shared.bytes, shared.rows_ready);
  }
  __syncthreads();  // barriers are initialised
  device::wait(shared.stamps_ready, 0);
  Located found{};
  if (thread < kWalkTargets) {
    if (thread < block.targets) found = locate_walk<Walk>(tile, block, shared.bytes, q);
    const Needed needed = needed_samples<Walk>(found, tile.samples, thread < block.targets);
    if (device::lane_index() == 0) shared.needed[thread / device::kWarpThreads] = needed;
  }
  __syncthreads();  // it is known which samples are needed

  // Where the guess was wrong, fetch exactly these; leave what the walk needs.
  const Needed some = shared.needed[0];
  const Needed others = shared.needed[1];
  const int lowest = min(some.first, others.first);
  const int highest = max(some.last, others.last);
  const bool held = lowest >= guess.first && highest < guess.first + guess.count;
  const Range rows = held ? guess : Range{lowest, min(highest + 1 - lowest, tile.row_capacity)};
  if (!held && thread == 0) {
    device::wait(shared.rows_ready, 0);
    fetch_rows(tile, block, rows, shared.bytes, shared.rows_ready);
  }
  bool slow = false;
  if (thread < block.targets) slow = leave_stop<Walk>(walk, shared.bytes, found, rows, thread);
  // The end of each strand, and of the targets.
  auto* stops = reinterpret_cast<Stop*>(shared.bytes + tile.output_at);
  if (thread < kWalkTargets / kStrandTargets)
    stops[stop_index(thread * kStrandTargets) + kStrandTargets].at = Stop::kEnd;
  if (thread == 0 && block.targets < kWalkTargets) stops[stop_index(block.targets)].at = Stop::kEnd;
  if constexpr (Walk::kSlopes)  // from the last thread on: they have no targets
#pragma unroll 1
    for (int row = kWalkThreads - 1 - thread; row < rows.count; row += kWalkThreads)
      locate_rate<Walk>(walk, block, shared.bytes, rows.first, row);
  const bool any_slow = __syncthreads_or(slow) != 0;  // stops and rates are there

  // Combine.
  device::wait(shared.rows_ready, held ? 0 : 1);
  device::let_next_kernel_start();
  const int begin = device::warp_index() * kStrandTargets;
  const int count = min(kStrandTargets, block.targets - begin);
  if (count <= 0) return;
  constexpr int bytes = Quad<Value>::kBytes;
  const Stop* first = stops + stop_index(begin);
  const int column = device::lane_index() * bytes;
  bool good = true;
  for (int at = column; at < block.width; at += device::kWarpThreads * bytes)
    good &= walk_strand<Value, Walk>(first, shared.bytes, tile.rows_at + at, walk.rates_at, block.width,
                                     block.output(tile, begin) + at);
  if (!any_slow && good) return;
  walk_slowly<Value, Walk>(block.output(tile, begin),
                           tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16, block.width, first,
                           reinterpret_cast<const SlowStop*>(shared.bytes + walk.slow_at) + begin, count, !good);
}

/// Targets per warp, so that a lane has about eight pieces to make and a block's window of rows stays small.
int choose_targets(const Job& job) {
  return std::clamp(8 * device::kWarpThreads / job.chunks.count, 2, device::kWarpThreads);
}

Job make_job(const Problem& problem, const Call& call, const Pieces& pieces, bool whole, int& shared_bytes) {
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Job job{};
  job.call = call;
  job.call.interpolation = Interpolation::linear;  // places keep their weights; the pieces say what becomes of them
  job.pieces = pieces;
  job.channels = static_cast<int>(problem.channels);
  job.width = job.channels * static_cast<int>(size_of(problem.values));
  job.chunks = Chunks((job.width + 15) / 16 * 16);
  job.targets_per_warp = choose_targets(job);
  const int tile = job.targets_per_warp * kWarps;
  job.time_margin = time_margin(problem.longest_source, call.longest_target);
  job.row_margin = std::min(job.time_margin, std::max(4, 2048 / job.width));
  job.stamp_capacity =
      window_capacity(problem, call.longest_target, tile, job.time_margin, kMostStampBytes / time_bytes);
  job.row_capacity = window_capacity(problem, call.longest_target, tile, job.row_margin, kMostRows / job.width);
  job.most_stamp_bytes = slice_bytes(job.stamp_capacity, time_bytes);
  job.most_row_bytes = slice_bytes(job.row_capacity, job.width);
  const auto round = [](int bytes) { return (bytes + 127) / 128 * 128; };
  job.pieces_at = round(tile * static_cast<int>(sizeof(CurveSpot)));
  job.stamps_at = job.pieces_at + round(job.chunks.count * static_cast<int>(sizeof(Piece)));
  job.rows_at = job.stamps_at + round(job.most_stamp_bytes);
  job.strips_at = job.rows_at + round(job.most_row_bytes);
  job.strip_bytes = whole ? 0 : (job.targets_per_warp * job.width + 31) / 16 * 16;
  shared_bytes = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)) + job.strips_at + kWarps * job.strip_bytes;
  return job;
}

/// What prepare() makes.
struct Prepared {
  std::shared_ptr<const void> call;
  bool empty = true;  // nothing to do
  LaunchConfig config{};
  bool walks = false;
  bool slerp = false;
  WalkTile walk{};
  bool whole = false;
  Job job{};
};

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("needs times next to one another");
  if (Support support = supports_rows(problem); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  if (problem.channels * static_cast<std::int64_t>(size_of(problem.values)) > kLongestRow)
    return Support::no("needs rows of at most " + std::to_string(kLongestRow) + " bytes");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  Problem one_group = problem;  // the pieces say what the groups are: no table of them on the device
  one_group.groups.resize(1);
  auto prepared = std::make_shared<Prepared>();
  prepared->call = prepare_call(one_group, arguments);
  const Call& call = static_cast<const cuda::Prepared*>(prepared->call.get())->call;
  if (call.longest_target == 0 || problem.batch == 0) return prepared;
  prepared->empty = false;
  LaunchConfig& config = prepared->config;
  config.block = dim3(kThreads);
  const Pieces pieces = pieces_of(problem);
  prepared->walks = takes_walk(problem, call, pieces);
  prepared->slerp = pieces.at[0].kind == Kind::quaternions;
  prepared->whole = static_cast<bool>(supports_16_byte_rows(problem));
  if (prepared->walks)
    prepared->walk =
        make_walk(problem, call, static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)), config.shared_bytes);
  else
    prepared->job = make_job(problem, call, pieces, prepared->whole, config.shared_bytes);
  const int tile = prepared->walks ? prepared->walk.tile.tile : prepared->job.targets_per_warp * kWarps;
  config.grid = tile_grid((call.longest_target + tile - 1) / tile, problem.batch);
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  if (prepared.empty) return;
  LaunchConfig config = prepared.config;
  config.dependent = arguments.dependent_launch;
  const CurrentDevice current(problem.device.index);
  WalkTile walk = prepared.walk;
  if (!config.dependent)  // nothing to overlap with: 1.6 us of 80
    for (Ahead& ahead : walk.tile.ahead) ahead = {};
  with_value_type(problem.values, [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    if (prepared.walks && prepared.slerp)
      launch_kernel<walk_kernel<Value, SlerpWalk<Value>>>(kSite, config, stream, walk);
    else if (prepared.walks)
      launch_kernel<walk_kernel<Value, PchipWalk<Value>>>(kSite, config, stream, walk);
    else if (prepared.whole)
      launch_kernel<kernel<Value, true>>(kSite, config, stream, prepared.job);
    else
      launch_kernel<kernel<Value, false>>(kSite, config, stream, prepared.job);
  });
}

}  // namespace tmaops::ops::resample::curve_window
