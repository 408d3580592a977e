// Reproduces the launch of the published TMA report: a block of 256 threads per query (and level), of which every
// fourth thread may issue (64 threads, threadIdx % 4 == 0). Thread 4 p issues the box of point p, so that eight points
// make eight loads in flight per block. All threads wait for the one barrier. Boxes are 2 x 2 pixels of 32 f16
// channels. It differs in two points. The four threads of a point sum its tile up, which makes the load observable. The
// tensor map has the image as a fourth dimension, where the published one has three and a batch has a map per image.
#include "device/shared_memory.cuh"
#include "study/tile_load/shared/query_blocks.cuh"
#include "study/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_query {
namespace {

__global__ void __launch_bounds__(kQueryThreads)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ LevelMaps maps) {
  auto& full = device::block_shared<device::Barrier>();
  auto& tiles = device::dynamic_shared<QueryTiles, kSite.smem>().tile;
  if (threadIdx.x == 0) {
    device::init_barrier(full, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(full, problem.points.divisor * kTileBytes);
  }
  __syncthreads();
  const BlockRun run(problem);

  const std::uint32_t point = threadIdx.x / kLanesPerTile;
  const bool there = point < problem.points.divisor;
  const std::uint32_t number = blockIdx.x * problem.points.divisor + point;
  if (there && threadIdx.x % kLanesPerTile == 0) {
    const Tile at = tile_at(problem, number);
    load_box<4>(at, tiles[point], maps.level[at.level], full);
  }
  device::wait(full, 0, {"the tiles of a query", 0});
  const int quarter = static_cast<int>(threadIdx.x) % kLanesPerTile;
  const std::uint32_t sum =
      device::group_sum<kLanesPerTile>(there ? checksum_of(tiles[point], quarter, static_cast<int>(point % 2)) : 0);
  if (there && quarter == 0) problem.checksums[number] = sum;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return query_blocks_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  work.add(kernel, query_blocks(problem, arguments), device_problem(problem, arguments),
           make_maps(problem, arguments, 4));
  return work;
}

}  // namespace tmaops::ops::tile_load::tensor_query
