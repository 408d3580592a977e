// Version 2: adds to plain persistent blocks, two tiles (eight loads of 16 bytes) in flight per thread, and the
// coordinates of the next two tiles, which are read while these are loaded.
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load::plain_prefetch {
namespace {

constexpr int kUnroll = 2;
constexpr int kBlocksPerMultiprocessor = 8;  // 1,024 threads of at most 64 registers

__global__ void __launch_bounds__(kBlockThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem) {
  const BlockRun run(problem);
  const int quarter = static_cast<int>(threadIdx.x) % kLanesPerTile;
  const std::uint32_t stride = gridDim.x * kTilesPerBlock;
  std::uint32_t t = blockIdx.x * kTilesPerBlock + threadIdx.x / kLanesPerTile;
  // All threads of a warp go round equally often: the rounds are counted from the warp's first tile.
  std::uint32_t first = blockIdx.x * kTilesPerBlock + threadIdx.x / device::kWarpThreads * kTilesPerWarp;
  Tile tiles[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (t + u * stride < problem.tiles) tiles[u] = tile_at(problem, t + u * stride);
  for (; first < problem.tiles; first += kUnroll * stride, t += kUnroll * stride) {
    uint4 words[kUnroll][kPixels];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const bool there = t + u * stride < problem.tiles;
      const TilePixels pixels(problem, tiles[u]);
#pragma unroll
      for (int pixel = 0; pixel < kPixels; ++pixel)
        words[u][pixel] = there ? load_chunk(pixels, pixel, quarter) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (t + (kUnroll + u) * stride < problem.tiles) tiles[u] = tile_at(problem, t + (kUnroll + u) * stride);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::uint32_t sum = 0;
#pragma unroll
      for (int pixel = 0; pixel < kPixels; ++pixel) sum += checksum_part(words[u][pixel], pixel, quarter);
      sum = device::group_sum<kLanesPerTile>(sum);
      if (t + u * stride < problem.tiles && quarter == 0) problem.checksums[t + u * stride] = sum;
    }
  }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, {.blocks_per_multiprocessor = kBlocksPerMultiprocessor});
}

}  // namespace tmaops::ops::tile_load::plain_prefetch
