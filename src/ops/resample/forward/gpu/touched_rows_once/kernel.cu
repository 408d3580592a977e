// Plain calls with f32 times and rows of 1, 2 or 4 chunks that are short or have few targets. If every lane searched
// for itself, as in touched_rows_lane, half of its instructions would repeat its neighbours' search, and a call of few
// bytes waits for instructions. So each target is located once, by warps that change from block to block: warp k of
// every block has the same scheduler. The times come by ordinary loads, which are under way sooner than a bulk copy.
#include <bit>

#include "ops/resample/forward/gpu/touched_rows_once/configs.hpp"
#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/time_load.cuh"

namespace tmaops::ops::resample::touched_rows_once {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  alignas(128) unsigned char bytes[20 * 1024];  // located targets, times; the launch asks for what the tile needs
};

template <class Value, int threads>
__global__ void __launch_bounds__(threads, resident_blocks(threads, 2048 / threads))
    kernel(const __grid_constant__ PlainTile tile) {
  unsigned char* shared = device::dynamic_shared<Storage, kSite.smem>().bytes;
  auto* spots = reinterpret_cast<Spot*>(shared);
  const PlainBlock block = plain_block<float>(tile);
  const auto thread = static_cast<int>(threadIdx.x);
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const TimeLoad<threads> load(tile.times + static_cast<std::int64_t>(block.time_unit) * 16, tile.time_bytes);
  const int searched = thread ^ (static_cast<int>(blockIdx.x) * device::kWarpThreads & (threads - 1));
  float q{};
  if (searched < block.targets) q = plain_target<float>(tile, block, searched);
  load.store(shared + tile.times_at);
  __syncthreads();

  // Search.
  if (searched < block.targets) locate_target<Rows16::in_memory>(tile, block, shared, q, searched);
  __syncthreads();
  device::let_next_kernel_start();

  // Combine.
  const int target = thread >> tile.lane_shift;
  if (target >= block.targets) return;
  const int chunk = thread & ((1 << tile.lane_shift) - 1);
  const Spot spot = spots[target];
  const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, spot.at) + chunk) * 16;
  const uint4 a = device::load_16(from);
  const uint4 b = device::load_16(from + (fabsf(spot.weight) > 0.0f ? block.width : 0));  // not of a missing target
  device::store_16(block.output(tile, target) + chunk * 16, mix_16<Value>(a, b, spot.weight));
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  Work work(kSite, problem.device);
  if (problem.batch == 0 || problem.target == 0) return work;
  const PlainCut cut = plain_cut(problem, config);
  PlainTile tile = make_plain_tile(problem, arguments, cut);
  tile.lane_shift = std::countr_zero(static_cast<unsigned>(tile.chunks.count));
  const LaunchShape shape{.grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
                          .block = static_cast<unsigned>(cut.threads),
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  with_value_type(problem.values, [&]<class Value>(Value*) {
    if (config.threads == 256)
      work.add(kernel<Value, 256>, shape, tile);
    else
      work.add(kernel<Value, 128>, shape, tile);
  });
  return work;
}

}  // namespace tmaops::ops::resample::touched_rows_once
