// Loads the rows that are needed and no others. A block takes a tile of consecutive targets of one trajectory: a window
// of stamps is copied to shared memory and searched, then the rows are loaded, several pairs of 16-byte loads in flight
// per lane. Two memory latencies, whatever the stamps. Every lane locates the target whose chunks it loads: that makes
// short lives, so that the memory is kept busy up to the end of a call (64,1000->500,512: 22.6 us, where a warp or a
// block that locates all its targets first takes 23.4). What the first blocks need is brought into the L2 ahead of
// time: 21.8 us. Where a warp's targets lie among few samples, its lanes hold the stamps, without shared memory. Rows
// of 64 bytes and less have a kernel that locates each target once.
#include "core/cuda_launch.hpp"
#include "ops/resample/cuda/plain_plan.cuh"

namespace tmaops::ops::resample::touched_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 128;
constexpr int kWindow = 1024;  // stamps
constexpr int kFlight = 4;     // 2: up to 2 % slower or faster
constexpr int kMostSharedBytes = 20 * 1024;

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier placed;
  alignas(128) unsigned char bytes[kMostSharedBytes];  // places, stamps; the launch asks for what the tile needs
};

/// `items` chunks per thread at a time. `apart`: each warp locates and combines its own targets; else the first warps
/// locate them for all. (Own of plain_mappings.cuh is the third way.)
template <int items, bool apart>
struct Touching {
  static constexpr int kThreads = items == 4 ? 128 : 256;
  static constexpr int kBlocks = items == 2 ? 6 : 8;
  static constexpr bool kEarly = true;

  static __device__ __forceinline__ int arrivals(const PlainTile& tile) {
    return apart ? 0 : searching_warps(tile.tile, static_cast<int>(blockDim.x));
  }
  static __device__ __forceinline__ int first_target(const PlainTile& tile) {
    const auto thread = static_cast<int>(threadIdx.x);
    if (!apart) return thread;
    const int lane = device::lane_index();
    return lane < tile.targets_per_warp ? thread / device::kWarpThreads * tile.targets_per_warp + lane : tile.tile;
  }
  template <class Value, class Time>
  static __device__ __forceinline__ void run(const PlainWork<Time>& work) {
    const PlainTile& tile = work.tile;
    const PlainBlock& block = work.block;
    Strand strand;
    if constexpr (apart) {
      const int target = first_target(tile);
      device::wait(work.stamps_ready, 0);
      if (target < block.targets) locate_target<false>(tile, block, work.shared, work.q, target);
      __syncwarp();
      strand = warp_strand(tile, block.targets);
    } else {
      locate_targets<false>(tile, block, work.shared, work.q, work.stamps_ready, work.rows_ready);
      strand = block_strand(tile, block.targets);
      device::wait(work.rows_ready, 0);
    }
    combine_spots<Value, items, false, false>(tile, block, work.shared, strand);
  }
};

/// Plain calls.
template <class Time, class Value, class Mapping>
__global__ void __launch_bounds__(Mapping::kThreads, resident_blocks(Mapping::kThreads, Mapping::kBlocks))
    plain_kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  if constexpr (Mapping::kEarly) device::let_next_kernel_start();
  const PlainBlock block = plain_block<Time>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    if (const int arrivals = Mapping::arrivals(tile); arrivals > 0) device::init_barrier(shared.placed, arrivals);
    device::fence_barrier_init();
  }
  fetch_ahead(tile);
  device::wait_for_previous_kernel();
  const int target = Mapping::first_target(tile);
  Time q{};
  if (target < block.targets) q = plain_target<Time>(tile, block, target);
  if (threadIdx.x == 0) fetch_stamps(tile, block, shared.bytes, shared.stamps_ready);
  __syncthreads();  // barriers are initialised
  Mapping::template run<Value>(PlainWork<Time>{tile, block, shared.bytes, q, shared.stamps_ready, shared.placed});
}

/// Plain calls with f32 times and rows of 1, 2 or 4 chunks. There every lane for itself would repeat each search, which
/// is 150 instructions of 290, and a call of few bytes waits for the issue slots: 64,4096->1024,32 has 16 warps per
/// scheduler, and the last of them had located their targets 2.5 us after the first. So each target is located once, by
/// warps that change from block to block: warp k of every block has the same scheduler. The stamps come by ordinary
/// loads, which are under way sooner than a bulk copy.
template <class Value, int threads>
__global__ void __launch_bounds__(threads, resident_blocks(threads, 2048 / threads))
    once_kernel(const __grid_constant__ PlainTile tile) {
  unsigned char* shared = device::dynamic_shared<Storage, kSite.smem>().bytes;
  auto* spots = reinterpret_cast<Spot*>(shared);
  const PlainBlock block = plain_block<float>(tile);
  const auto thread = static_cast<int>(threadIdx.x);
  fetch_ahead(tile);
  device::wait_for_previous_kernel();
  const StampLoad<threads> load(tile.stamps + static_cast<std::int64_t>(block.stamp_unit) * 16, tile.stamp_bytes);
  const int searched = thread ^ (static_cast<int>(blockIdx.x) * device::kWarpThreads & (threads - 1));
  float q{};
  if (searched < block.targets) q = plain_target<float>(tile, block, searched);
  load.store(shared + tile.stamps_at);
  __syncthreads();
  if (searched < block.targets) locate_target<false>(tile, block, shared, q, searched);
  __syncthreads();
  device::let_next_kernel_start();

  const int target = thread >> tile.lane_shift;
  if (target >= block.targets) return;
  const int chunk = thread & ((1 << tile.lane_shift) - 1);
  const Spot spot = spots[target];
  const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, spot.at) + chunk) * 16;
  const uint4 a = device::load_16(from);
  const uint4 b = device::load_16(from + (fabsf(spot.weight) > 0.0f ? block.width : 0));  // not of a missing target
  device::store_16(block.output(tile, target) + chunk * 16, mix_16<Value>(a, b, spot.weight));
}

/// What warp_kernel needs of a tile, in the order it needs it: 64 bytes for the search, then the rows.
struct WarpTile {
  explicit WarpTile(const PlainTile& tile, const Sliding& slide)
      : stamps(reinterpret_cast<const float*>(tile.stamps)),
        targets(reinterpret_cast<const float*>(tile.targets)),
        stamp_stride(tile.stamp_stride),
        target_stride(tile.target_stride),
        pace(tile.pace),
        tile(tile.tile),
        lane_shift(tile.lane_shift),
        time_margin(tile.time_margin),
        samples(tile.samples),
        target_count(tile.target_count),
        interpolation(tile.interpolation),
        row(tile.chunks.count),
        values(reinterpret_cast<const uint4*>(tile.values)),
        output(reinterpret_cast<uint4*>(tile.output)),
        value_stride(tile.value_stride),
        output_stride(tile.output_stride),
        ahead{tile.ahead[0], tile.ahead[1], tile.ahead[2]},
        sliding(slide) {}
  const float* stamps;
  const float* targets;
  int stamp_stride, target_stride;
  Pace pace;
  int tile, lane_shift, time_margin;
  int samples, target_count;
  Interpolation interpolation;
  int row;  // chunks
  const uint4* values;
  uint4* output;
  int value_stride, output_stride;
  Ahead ahead[3];
  Sliding sliding;
};

/// Plain calls with f32 times where a warp's targets lie among few samples: warps keep to themselves.
template <class Value, int chunks>
__global__ void __launch_bounds__(kMaxThreads, resident_blocks(kMaxThreads, 16))
    warp_kernel(const __grid_constant__ WarpTile tile) {
  fetch_ahead(tile.ahead);
  const auto thread = static_cast<int>(threadIdx.x);
  const auto b = static_cast<int>(blockIdx.y);
  const int begin = static_cast<int>(blockIdx.x) * tile.tile;
  const int target = begin + (thread >> tile.lane_shift);
  const int first = begin + (thread / device::kWarpThreads * device::kWarpThreads >> tile.lane_shift);  // of the warp
  const int wanted = sample_beside(tile.pace, first) - tile.time_margin;
  const float* stamps = tile.stamps + b * tile.stamp_stride;
  const float* targets = tile.targets + b * tile.target_stride;
  device::wait_for_previous_kernel();
  const WarpStamps held(stamps, tile.samples, wanted);
  const float q = device::load_now(targets + min(target, tile.target_count - 1));
  if (thread < device::kWarpThreads) tile.sliding.fetch(thread);
  const Place<int> at = place_in(tile.interpolation, find_in_warp(stamps, tile.samples, held, q), q);
  device::let_next_kernel_start();
  if (target >= tile.target_count) return;

  const int lanes = 1 << tile.lane_shift;
  const int column = thread & (lanes - 1);
  const int second = fabsf(at.weight) > 0.0f ? tile.row : 0;  // not of a missing target
  const uint4* from = tile.values + (b * tile.value_stride + at.row * tile.row + column);
  uint4* to = tile.output + (b * tile.output_stride + target * tile.row + column);
  uint4 a[chunks];
  uint4 next[chunks];
#pragma unroll
  for (int k = 0; k < chunks; ++k) {
    a[k] = device::load_16(from + k * lanes);
    next[k] = device::load_16(from + second + k * lanes);
  }
#pragma unroll
  for (int k = 0; k < chunks; ++k) device::store_16(to + k * lanes, mix_16<Value>(a[k], next[k], at.weight));
}

struct Job {
  Call call;
  Chunks chunks;
  int targets_per_warp;
  int margin;
  int capacity;  // samples
};

/// All other calls.
template <class Time, class Value>
__global__ void __launch_bounds__(kMaxThreads, 8) kernel(const __grid_constant__ Job job) {
  __shared__ Time window[kWindow];
  device::let_next_kernel_start();
  const Call& call = job.call;
  const std::int64_t b = block_trajectory(call);
  if (b >= batch_of(call)) return;
  device::wait_for_previous_kernel();

  const Trajectory<Time> of = trajectory<Time>(call, b);
  const auto threads = static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(blockIdx.x) * (threads / device::kWarpThreads * job.targets_per_warp);
  if (begin >= of.targets) return;

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
    if (of.samples > 0) at = locate(call, of, window, range, q);
    write_valid(call, b, first + lane, at.weight);
  }
  write_touched_rows<Value, kFlight>(row_bytes<Value>(call, b, job.chunks.count * 16), job.chunks, at, first, count,
                                     of.samples > 0);
}

void run_plain(const Problem& problem, const Call& call, const PlainChoice& choice, bool dependent_launch,
               Stream stream) {
  int shared_bytes = 0;
  const PlainTile tile = make_plain_tile(problem, call, choice, false, shared_bytes);
  const Sliding sliding = make_sliding(problem, choice, tile);
  const LaunchConfig config{
      .grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
      .block = dim3(static_cast<unsigned>(choice.threads)),
      .shared_bytes = choice.mapping == PlainChoice::Mapping::warp
                          ? 0
                          : shared_bytes + static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)),
      .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    const auto launch_with = [&](auto mapping) {
      launch_kernel<plain_kernel<Time, Value, decltype(mapping)>>(kSite, config, stream, tile);
    };
    if constexpr (std::is_same_v<Time, float>) {
      if (choice.mapping == PlainChoice::Mapping::once)
        return choice.threads == 128 ? launch_kernel<once_kernel<Value, 128>>(kSite, config, stream, tile)
                                     : launch_kernel<once_kernel<Value, 256>>(kSite, config, stream, tile);
      if (choice.mapping == PlainChoice::Mapping::warp)
        return choice.chunks == 1
                   ? launch_kernel<warp_kernel<Value, 1>>(kSite, config, stream, WarpTile(tile, sliding))
                   : launch_kernel<warp_kernel<Value, 2>>(kSite, config, stream, WarpTile(tile, sliding));
      if (choice.mapping == PlainChoice::Mapping::own)
        return choice.chunks == 1 ? launch_with(Own<1, false>{})
                                  : (choice.chunks == 2 ? launch_with(Own<2, false>{}) : launch_with(Own<4, false>{}));
      if (choice.chunks == 1) return launch_with(Touching<1, false>{});
    }
    if (choice.mapping == PlainChoice::Mapping::apart)
      launch_with(Touching<4, true>{});
    else
      launch_with(Touching<2, false>{});
  });
}

/// A power of two of targets per warp, so that no round of loads is nearly empty.
void run(const Problem& problem, const Call& call, bool dependent_launch, Stream stream) {
  const Chunks chunks(problem.channels * static_cast<std::int64_t>(size_of(problem.values)));
  const int targets_per_warp = std::clamp(8 * device::kWarpThreads / chunks.count, 1, device::kWarpThreads);
  const int margin = time_margin(problem.longest_source, call.longest_target);
  const int tile = targets_per_warp * kMaxThreads / device::kWarpThreads;
  const int capacity = window_capacity(problem, call.longest_target, tile, margin, kWindow);
  const LaunchConfig config{.grid = tile_grid((call.longest_target + tile - 1) / tile, problem.batch),
                            .block = dim3(kMaxThreads),
                            .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>(kSite, config, stream, Job{call, chunks, targets_per_warp, margin, capacity});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_windows(problem); !support) return support;
  return supports_16_byte_rows(problem);
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  if (takes_plain_tiles(problem, call))
    run_plain(problem, call, choose_touched(problem, arguments.dependent_launch), arguments.dependent_launch, stream);
  else
    run(problem, call, arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::touched_rows
