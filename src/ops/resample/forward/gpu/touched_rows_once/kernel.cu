// Plain calls with f32 times and rows of 1, 2 or 4 chunks that are short or have few targets. If every lane searched
// for itself, as in touched_rows_lane, half of its instructions would repeat its neighbours' search, and a call of few
// bytes waits for instructions. So each target is located once, by warps that change from block to block: warp k of
// every block has the same scheduler. The times come by ordinary loads, which are under way sooner than a bulk copy.
#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/plain_work.cuh"
#include "ops/resample/forward/shared/resident.cuh"
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
  PlainCut cut = touched_rows_cut(problem, config.threads, static_cast<int>(problem.row_bytes() / 16));
  cut.spot_bytes = sizeof(Spot);
  return plain_work<Storage>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_value_type(problem.values, [&]<class Value>(Value*) {
      if (config.threads == 256)
        work.add(kernel<Value, 256>, shape, tile);
      else
        work.add(kernel<Value, 128>, shape, tile);
    });
  });
}

}  // namespace tmaops::ops::resample::touched_rows_once
