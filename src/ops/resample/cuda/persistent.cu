// The published persistent grid, done right: a few blocks per multiprocessor that loop over tiles of targets, while the
// copies of the next tiles are under way. A tile is fetched, searched and combined as in bulk_window; each block has a
// ring of stages, so that its copies run a tile ahead of its arithmetic.
#include "core/device_info.hpp"
#include "device/pipeline.cuh"
#include "ops/resample/cuda/tile_plan.cuh"

namespace tmaops::ops::resample::persistent {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 256;
constexpr int kStages = 2;
constexpr int kMostStageBytes = 48 * 1024;

struct Storage {
  device::Ring<kStages> ring;
  Held stamps[kStages];
  Range near[kStages];
  alignas(128) unsigned char bytes[kStages * kMostStageBytes];  // per stage stamps, then rows
};

template <class AnyCall>
struct Job {
  AnyCall call;
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
template <class AnyCall>
__device__ __forceinline__ Item item_of(const Job<AnyCall>& job, std::uint32_t item) {
  const std::uint32_t b = item / job.tiles;
  return {b, static_cast<int>(item - b * job.tiles) * job.tile.targets};
}

template <class Time, class Value, class AnyCall>
__global__ void __launch_bounds__(kMaxThreads) kernel(const __grid_constant__ Job<AnyCall> job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const AnyCall& call = job.call;
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
    const Slice stamps = stamp_slice(
        call, of, guess(of.pace, item.begin, of.samples, tile.time_margin, tile.stamp_capacity), tile.stamp_bytes);
    const auto row_bytes_wanted = static_cast<std::uint32_t>(near.count * width);
    shared.stamps[stage] = {stamps.held, stamps.shift};
    shared.near[stage] = near;
    unsigned char* to = shared.bytes + stage * job.stage_bytes;
    producer.expect(stage, stamps.bytes + row_bytes_wanted);
    if (stamps.bytes > 0) device::bulk_load(to, stamps.from, stamps.bytes, producer.full(stage));
    if (row_bytes_wanted > 0)
      device::bulk_load(to + tile.rows_at,
                        row_bytes<Value>(call, item.b, width).values + static_cast<std::int64_t>(near.first) * width,
                        row_bytes_wanted, producer.full(stage));
  };
  std::uint32_t next = blockIdx.x;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < kStages && next < job.items; ++stage, next += gridDim.x) fetch(next);
  __syncthreads();  // barriers are initialised

  // Consumers: all warps.
  device::Consumer<kStages> consumer(shared.ring);
  const int inside = Dealt::target_in_block(tile);
  const bool in_tile = device::lane_index() < tile.targets_per_warp;
  for (std::uint32_t number = blockIdx.x; number < job.items; number += gridDim.x) {
    const Item item = item_of(job, number);
    const Trajectory<Time> of = trajectory<Time>(call, item.b);
    const int t = item.begin + inside;
    const bool active = in_tile && t < of.targets;
    Time q{};
    if (active) q = target_time<Time>(call, item.b, t);
    const int stage = consumer.acquire();
    const unsigned char* held = shared.bytes + stage * job.stage_bytes;
    const Held stamps = shared.stamps[stage];
    Place<int> at{0, missing()};
    if (active) {
      if (of.samples > 0) at = locate(call, of, reinterpret_cast<const Time*>(held + stamps.shift), stamps.range, q);
      write_valid(call, item.b, t, at.weight);
    }
    Dealt::combine<Value>(
        tile, Window{held + tile.rows_at, shared.near[stage], row_bytes<Value>(call, item.b, width), of.samples > 0},
        at, t, active);
    __syncwarp();
    if (device::lane_index() == 0) consumer.release(stage);
    if (threadIdx.x == 0 && next < job.items) {
      fetch(next);
      next += gridDim.x;
    }
    __syncwarp();
  }
}

/// Blocks per multiprocessor: what its shared memory and threads hold, at most 8.
int blocks_per_multiprocessor(int threads, int shared_bytes, const DeviceInfo& device) {
  return std::clamp(std::min(static_cast<int>(device.shared_memory_per_block) / (shared_bytes + 1024), 2048 / threads),
                    1, 8);
}

void run(const Problem& problem, const Call& call, const TileChoice& choice, int blocks, bool dependent_launch,
         Stream stream) {
  LaunchConfig config{.block = dim3(static_cast<unsigned>(choice.threads)), .dependent = dependent_launch};
  int stage_bytes = 0;
  const Tile tile = make_tile(problem, call, choice, stage_bytes, kMostStageBytes);
  stage_bytes = (stage_bytes + 127) / 128 * 128;
  config.shared_bytes = kStages * stage_bytes + static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes));
  const auto tiles = static_cast<std::uint32_t>((call.longest_target + tile.targets - 1) / tile.targets);
  const auto items = static_cast<std::uint32_t>(tiles * problem.batch);
  const DeviceInfo& device = device_info(problem.device);
  if (blocks == 0) blocks = blocks_per_multiprocessor(choice.threads, config.shared_bytes, device);
  const auto most = static_cast<std::uint32_t>(blocks * device.multiprocessors);
  config.grid = dim3(std::min(items, most));
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<Time, float>)
      if (is_plain(problem, call))
        return launch_kernel<kernel<Time, Value, PlainCall>>(
            kSite, config, stream, Job<PlainCall>{plain_call(problem, call), tile, tiles, items, stage_bytes});
    launch_kernel<kernel<Time, Value, Call>>(kSite, config, stream, Job<Call>{call, tile, tiles, items, stage_bytes});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tiles(problem); !support) return support;
  const std::int64_t targets = std::max<std::int64_t>(problem.target, 1);
  if (problem.batch > (std::int64_t{1} << 31) / targets) return Support::no("needs at most 2^31 targets in all");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  run(problem, call, choose_tile(problem, call), 0, arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::persistent
