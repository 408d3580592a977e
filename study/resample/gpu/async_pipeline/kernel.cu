// Plain calls of 16-byte rows, as in bulk_window with the other copy: cuda::pipeline and memcpy_async, 16 bytes per
// thread and instruction (cp.async), instead of bulk copies by one thread. The times are the pipeline's first stage,
// the rows its second. Copies by all threads win in long calls of narrow rows that write most of their bytes.
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "ops/resample/forward/shared/plain_work.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/window_rows.cuh"

namespace tmaops::ops::resample::async_pipeline {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  alignas(128) unsigned char bytes[kMostTileBytes];  // times, rows; the launch asks for what the tile needs
};

template <class Time, class Value>
__global__ void __launch_bounds__(kTileThreads) kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const PlainBlock block = plain_block<Time>(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const int t = target_of_lane(tile.targets_per_warp);
  const bool active = t < block.targets && device::lane_index() < tile.targets_per_warp;
  Time q{};
  if (active) q = plain_target<Time>(tile, block, t);
  const unsigned char* values = tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16;
  const auto threads = cooperative_groups::this_thread_block();
  auto pipeline = ::cuda::make_pipeline();
  const auto fetch = [&](unsigned char* to, const unsigned char* from, int bytes) {
    pipeline.producer_acquire();
    ::cuda::memcpy_async(threads, to, from, ::cuda::aligned_size_t<16>(static_cast<std::size_t>(bytes)), pipeline);
    pipeline.producer_commit();
  };
  fetch(array_of(shared.bytes, tile.times_held), tile.times + static_cast<std::int64_t>(block.time_unit) * 16,
        tile.time_bytes);
  fetch(array_of(shared.bytes, tile.rows_held), values + static_cast<std::int64_t>(block.first_row) * block.width,
        tile.row_capacity * block.width);

  // Search.
  ::cuda::pipeline_consumer_wait_prior<1>(pipeline);
  __syncthreads();
  Place<int> at{0, missing()};
  if (active) at = plain_place(tile, block, shared.bytes, q);

  // Combine.
  ::cuda::pipeline_consumer_wait_prior<0>(pipeline);
  device::let_next_kernel_start();
  __syncthreads();
  const RowBytes rows{values, block.width, block.output(tile, 0), block.width};
  write_window_rows<Value>(tile.chunks,
                           {array_of(shared.bytes, tile.rows_held), {block.first_row, tile.row_capacity}, rows, true},
                           at, t, active);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  PlainCut cut = windows_cut(problem, kTileThreads);
  cut.targets_per_warp = targets_per_warp(problem);
  cut.targets = cut.targets_per_warp * (kTileThreads / kWarp);
  cut.row_margin = row_margin(problem, cut.time_margin);
  return plain_work<Storage>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, tile); });
  });
}

}  // namespace tmaops::ops::resample::async_pipeline
