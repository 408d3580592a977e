// Version 4: cp.async in place of load and store to shared memory. Every thread reads only the 16 bytes that it copied
// itself, so no barrier is needed. Two tiles are in flight per four threads.
#include "device/cp_async.cuh"
#include "device/shared_memory.cuh"
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load::cp_async {
namespace {

constexpr int kStages = 2;
constexpr int kBlocksPerMultiprocessor = 10;

__global__ void __launch_bounds__(kBlockThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem) {
  auto& tiles = device::block_shared<unsigned char[kStages][kTilesPerBlock * kTileBytes], 128>();
  const BlockRun run(problem);
  const int thread = static_cast<int>(threadIdx.x);
  const int mine = thread / kLanesPerTile;
  const int quarter = thread % kLanesPerTile;
  const std::uint32_t stride = gridDim.x * kTilesPerBlock;

  // Neighbouring tiles write their pixels in different order, so that 8 threads touch all banks once.
  const auto issue = [&](std::uint32_t first, int stage) {
    const std::uint32_t t = first + static_cast<std::uint32_t>(mine);
    if (t < problem.tiles) {
      const TilePixels pixels(problem, tile_at(problem, t));
      unsigned char* to = tiles[stage] + mine * kTileBytes + quarter * 16;
#pragma unroll
      for (int i = 0; i < kPixels; ++i) {
        const int pixel = i ^ (mine % 2);
        const bool inside = pixels.inside(pixel);
        device::copy_async_16(to + pixel * kPixelBytes, inside ? pixels.at(pixel) + quarter * 16 : problem.value,
                              inside ? 16 : 0);
      }
    }
    device::commit_copies();
  };

  std::uint32_t first = blockIdx.x * kTilesPerBlock;
  int stage = 0;
  issue(first, 0);
  for (; first < problem.tiles; first += stride, stage ^= 1) {
    issue(first + stride, stage ^ 1);
    device::wait_copies<1>();
    const std::uint32_t t = first + static_cast<std::uint32_t>(mine);
    const bool there = t < problem.tiles;
    const std::uint32_t sum =
        device::group_sum<kLanesPerTile>(there ? checksum_of(tiles[stage] + mine * kTileBytes, quarter, mine % 2) : 0);
    if (there && quarter == 0) problem.checksums[t] = sum;
  }
  device::wait_copies<0>();
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, {.blocks_per_multiprocessor = kBlocksPerMultiprocessor});
}

}  // namespace tmaops::ops::tile_load::cp_async
