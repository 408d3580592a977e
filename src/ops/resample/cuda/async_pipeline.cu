// bulk_window with the other copy: cuda::pipeline and memcpy_async, 16 bytes per thread and instruction (cp.async),
// instead of bulk copies by one thread. The stamps are the pipeline's first stage, the rows its second. What differs is
// the copy alone, so that the choice between the two is a measured one.
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "ops/resample/cuda/tile_plan.cuh"

namespace tmaops::ops::resample::async_pipeline {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 256;

struct Storage {
  alignas(128) unsigned char bytes[kMostTileBytes];  // stamps, then rows; the launch asks for what the tile needs
};

template <class AnyCall>
struct Job {
  AnyCall call;
  Tile tile;
};

template <class Time, class Value, class AnyCall>
__global__ void __launch_bounds__(kMaxThreads) kernel(const __grid_constant__ Job<AnyCall> job) {
  constexpr bool plain = std::is_same_v<AnyCall, PlainCall>;
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const AnyCall& call = job.call;
  const Tile& tile = job.tile;
  const std::int64_t b = block_trajectory(call);
  if (!plain && b >= batch_of(call)) return;
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int begin = static_cast<int>(blockIdx.x) * tile.targets;
  if (!plain && begin >= of.targets) return;
  const int t = begin + Dealt::target_in_block(tile);
  const bool active = t < of.targets && device::lane_index() < tile.targets_per_warp;
  Time q{};
  if (active) q = target_time<Time>(call, b, t);
  const int width = tile.chunks.count * 16;
  const RowBytes rows = row_bytes<Value>(call, b, width);
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  const Slice stamps =
      stamp_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.stamp_capacity), tile.stamp_bytes);
  const auto block = cooperative_groups::this_thread_block();
  auto pipeline = ::cuda::make_pipeline();
  const auto fetch = [&](unsigned char* to, const unsigned char* from, std::uint32_t bytes) {
    pipeline.producer_acquire();
    ::cuda::memcpy_async(block, to, from, ::cuda::aligned_size_t<16>(bytes), pipeline);
    pipeline.producer_commit();
  };
  fetch(shared.bytes, stamps.from, stamps.bytes);
  fetch(shared.bytes + tile.rows_at, rows.values + static_cast<std::int64_t>(near.first) * width,
        static_cast<std::uint32_t>(near.count * width));

  // Search.
  ::cuda::pipeline_consumer_wait_prior<1>(pipeline);
  __syncthreads();
  Place<int> at{0, missing()};
  if (active) {
    if (plain || of.samples > 0)
      at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + stamps.shift), stamps.held, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  ::cuda::pipeline_consumer_wait_prior<0>(pipeline);
  device::let_next_kernel_start();
  __syncthreads();
  Dealt::combine<Value>(tile, Window{shared.bytes + tile.rows_at, near, rows, plain || of.samples > 0}, at, t, active);
}

void run(const Problem& problem, const Call& call, const TileChoice& choice, bool dependent_launch, Stream stream) {
  LaunchConfig config{.block = dim3(static_cast<unsigned>(choice.threads)), .dependent = dependent_launch};
  const Tile tile = make_tile(problem, call, choice, config.shared_bytes);
  config.grid = tile_grid((call.longest_target + tile.targets - 1) / tile.targets, problem.batch);
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<Time, float>)
      if (is_plain(problem, call))
        return launch_kernel<kernel<Time, Value, PlainCall>>(kSite, config, stream,
                                                             Job<PlainCall>{plain_call(problem, call), tile});
    launch_kernel<kernel<Time, Value, Call>>(kSite, config, stream, Job<Call>{call, tile});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_tiles(problem); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  run(problem, call, choose_tile(problem, call), arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::async_pipeline
