// The published persistent grid, done right: a few blocks per multiprocessor that loop over tiles of targets, while the
// copies of the next tiles are under way. A tile is fetched, searched and combined as in bulk_window; each block has a
// ring of stages, so that its copies run a tile ahead of its arithmetic.
#include "core/device_info.hpp"
#include "device/pipeline.cuh"
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/window_rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample::persistent {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kStages = 2;
constexpr int kMostStageBytes = 48 * 1024;

struct Storage {
  device::Ring<kStages> ring;
  Held times[kStages];
  Range near[kStages];
  alignas(128) unsigned char bytes[kStages * kMostStageBytes];  // per stage times, then rows
};

struct Job {
  Call call;
  Tile tile;
  std::uint32_t tiles;  // per trajectory
  std::uint32_t items;  // tiles in all
  int stage_bytes;
};

/// Tile `item` of the call.
struct Item {
  std::int64_t b;
  int begin;  // first target
};
__device__ __forceinline__ Item item_of(const Job& job, std::uint32_t item) {
  const std::uint32_t b = item / job.tiles;
  return {b, static_cast<int>(item - b * job.tiles) * job.tile.targets};
}

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const Call& call = job.call;
  const Tile& tile = job.tile;
  const int width = tile.chunks.count * 16;
  if (threadIdx.x == 0) shared.ring.init(1, blockDim.x / device::kWarpThreads);
  device::wait_for_previous_kernel();

  // Producer: thread 0, ahead of the others by the number of stages.
  device::Producer<kStages> producer(shared.ring);
  const auto fetch = [&](std::uint32_t number) {
    const Item item = item_of(job, number);
    const Trajectory<Time> of = trajectory<Time>(call, item.b);
    const int stage = producer.acquire();
    const Range near = guess(of.pace, item.begin, of.samples, tile.row_margin, tile.row_capacity);
    const Slice times =
        time_slice(call, of, guess(of.pace, item.begin, of.samples, tile.time_margin, tile.time_capacity));
    const auto row_bytes_wanted = static_cast<std::uint32_t>(near.count * width);
    shared.times[stage] = {times.held, times.shift};
    shared.near[stage] = near;
    unsigned char* to = array_of(shared.bytes, SharedArray<unsigned char>{stage * job.stage_bytes});
    producer.expect(stage, times.bytes + row_bytes_wanted);
    if (times.bytes > 0) device::bulk_load(array_of(to, kFirstArray), times.from, times.bytes, producer.full(stage));
    if (row_bytes_wanted > 0)
      device::bulk_load(array_of(to, tile.rows),
                        row_bytes<Value>(call, item.b).values + static_cast<std::int64_t>(near.first) * width,
                        row_bytes_wanted, producer.full(stage));
  };
  std::uint32_t next = blockIdx.x;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < kStages && next < job.items; ++stage, next += gridDim.x) fetch(next);
  __syncthreads();  // barriers are initialised

  // Consumers: all warps.
  device::Consumer<kStages> consumer(shared.ring);
  const int inside = target_of_lane(tile.targets_per_warp);
  const bool in_tile = device::lane_index() < tile.targets_per_warp;
  for (std::uint32_t number = blockIdx.x; number < job.items; number += gridDim.x) {
    const Item item = item_of(job, number);
    const Trajectory<Time> of = trajectory<Time>(call, item.b);
    const int t = item.begin + inside;
    const bool active = in_tile && t < of.targets;
    Time q{};
    if (active) q = target_time<Time>(call.line, item.b, t);
    const int stage = consumer.acquire();
    const unsigned char* held = array_of(shared.bytes, SharedArray<unsigned char>{stage * job.stage_bytes});
    const Held times = shared.times[stage];
    Place<int> at{0, missing()};
    if (active) {
      if (of.samples > 0)
        at = locate(call, of, reinterpret_cast<const Time*>(array_of(held, kFirstArray) + times.shift), times.range, q);
      write_valid(call, item.b, t, at.weight);
    }
    write_window_rows<Value>(
        tile.chunks,
        Window{array_of(held, tile.rows), shared.near[stage], row_bytes<Value>(call, item.b), of.samples > 0}, at, t,
        active);
    __syncwarp();
    if (device::lane_index() == 0) consumer.release(stage);
    if (threadIdx.x == 0 && next < job.items) {
      fetch(next);
      next += gridDim.x;
    }
    __syncwarp();
  }
}

/// Blocks per multiprocessor: what its shared memory holds, at most 8.
int blocks_per_multiprocessor(int shared_bytes, const DeviceInfo& device) {
  return std::clamp(static_cast<int>(device.shared_memory_per_block) / (shared_bytes + 1024), 1, 8);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments);
  const Tile tile = make_tile(problem, call.longest_target, kMostStageBytes);
  const int stage_bytes = round_up(tile.shared_end, 128);
  const int shared_bytes = kStages * stage_bytes + static_cast<int>(offsetof(Storage, bytes));
  const auto tiles = static_cast<std::uint32_t>((call.longest_target + tile.targets - 1) / tile.targets);
  const auto items = static_cast<std::uint32_t>(tiles * problem.batch);
  const DeviceInfo& device = device_info(problem.device);
  const auto most =
      static_cast<std::uint32_t>(blocks_per_multiprocessor(shared_bytes, device) * device.multiprocessors);
  const LaunchShape shape{.grid = std::min(items, most),
                          .block = kTileThreads,
                          .shared_bytes = shared_bytes,
                          .dependent = arguments.dependent_launch};
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
    work.add(kernel<Time, Value>, shape, Job{call, tile, tiles, items, stage_bytes});
  });
  return work;
}

}  // namespace tmaops::ops::resample::persistent
