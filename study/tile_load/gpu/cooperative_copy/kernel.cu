// Version 3: the block copies 32 tiles into shared memory with plain loads and sums them from there. Neighbouring
// threads load neighbouring 16 bytes. Compared with `plain` this adds a copy through shared memory and two block
// barriers.
#include "device/shared_memory.cuh"
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load::cooperative_copy {
namespace {

constexpr int kBlocksPerMultiprocessor = 10;
constexpr int kChunks = kTileBytes / 16;
constexpr int kChunksPerThread = kTilesPerBlock * kChunks / kBlockThreads;

__global__ void __launch_bounds__(kBlockThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem) {
  auto& tiles = device::block_shared<unsigned char[kTilesPerBlock * kTileBytes], 128>();
  const BlockRun run(problem);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::uint32_t first = blockIdx.x * kTilesPerBlock; first < problem.tiles; first += gridDim.x * kTilesPerBlock) {
#pragma unroll
    for (int i = 0; i < kChunksPerThread; ++i) {
      const int chunk = i * kBlockThreads + thread;
      const std::uint32_t t = first + static_cast<std::uint32_t>(chunk / kChunks);
      uint4 words = make_uint4(0, 0, 0, 0);
      if (t < problem.tiles)
        words = load_chunk(TilePixels(problem, tile_at(problem, t)), chunk % kChunks / 4, chunk % 4);
      *reinterpret_cast<uint4*>(tiles + chunk * 16) = words;
    }
    __syncthreads();
    const int tile = thread / kLanesPerTile;
    const std::uint32_t sum =
        device::group_sum<kLanesPerTile>(checksum_of(tiles + tile * kTileBytes, thread % kLanesPerTile, tile % 2));
    const std::uint32_t t = first + static_cast<std::uint32_t>(tile);
    if (t < problem.tiles && thread % kLanesPerTile == 0) problem.checksums[t] = sum;
    __syncthreads();
  }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, {.blocks_per_multiprocessor = kBlocksPerMultiprocessor});
}

}  // namespace tmaops::ops::tile_load::cooperative_copy
