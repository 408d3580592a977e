// Version 6: tensor loads the way a first TMA kernel is written. Warp 0 issues 32 boxes, one barrier tells the whole
// block, and a block barrier gives the stage back. One launch per level, each with a rank-4 map.
#include "device/shared_memory.cuh"
#include "study/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_block {
namespace {

constexpr int kStages = 2;
constexpr int kBlocksPerMultiprocessor = 12;

__global__ void __launch_bounds__(kBlockThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ tma::TensorMap map) {
  auto& tiles = device::block_shared<unsigned char[kStages][kTilesPerBlock * kTileBytes], 128>();
  auto& full = device::block_shared<device::Barrier[kStages]>();
  const int warp = device::warp_index();
  const int lane = device::lane_index();
  if (threadIdx.x == 0) {
    device::prefetch_tensor_map(&map);
    for (device::Barrier& barrier : full) device::init_barrier(barrier, 1);
    device::fence_barrier_init();
  }
  __syncthreads();
  const BlockRun run(problem);

  const auto fill = [&](std::uint32_t first, int stage) {
    if (warp != 0 || first >= problem.tiles) return;
    const std::uint32_t count = min(problem.tiles - first, static_cast<std::uint32_t>(kTilesPerBlock));
    const bool valid = static_cast<std::uint32_t>(lane) < count;
    const Tile tile = valid ? tile_at(problem, tile_number(problem, first + static_cast<std::uint32_t>(lane))) : Tile{};
    if (lane == 0) device::arrive_expect_bytes(full[stage], count * kTileBytes);
    __syncwarp();
    if (valid) load_box<4>(tile, tiles[stage] + lane * kTileBytes, map, full[stage]);
  };

  const std::uint32_t stride = gridDim.x * kTilesPerBlock;
  std::uint32_t first = blockIdx.x * kTilesPerBlock;
  fill(first, 0);
  std::uint32_t phase = 0;
  for (int stage = 0; first < problem.tiles; first += stride) {
    fill(first + stride, stage ^ 1);
    device::wait(full[stage], phase, {"the tiles of a block", stage});
    const int mine = static_cast<int>(threadIdx.x) / kLanesPerTile;
    const int quarter = static_cast<int>(threadIdx.x) % kLanesPerTile;
    const std::uint32_t t = first + static_cast<std::uint32_t>(mine);
    const bool there = t < problem.tiles;
    const int read = there ? mine : 0;  // a block's first tile always exists
    const std::uint32_t sum =
        device::group_sum<kLanesPerTile>(checksum_of(tiles[stage] + read * kTileBytes, quarter, mine % 2));
    if (there && quarter == 0) problem.checksums[tile_number(problem, t)] = sum;
    __syncthreads();
    stage ^= 1;
    if (stage == 0) phase ^= 1;
  }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  constexpr PersistentShape shape{.blocks_per_multiprocessor = kBlocksPerMultiprocessor};
  return each_level_work(kernel, kSite, problem, arguments, make_maps(problem, arguments, 4),
                         [&](const Problem&, std::int64_t) { return shape; });
}

}  // namespace tmaops::ops::tile_load::tensor_block
