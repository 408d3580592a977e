// Version 1: the plain way. Four threads load a tile, each by four independent loads of 16 bytes.
#include "study/tile_load/shared/gather.cuh"

namespace tmaops::ops::tile_load::plain {
namespace {

__global__ void __launch_bounds__(kBlockThreads) kernel(const __grid_constant__ DeviceProblem problem) {
  const BlockRun run(problem);
  const std::uint32_t t = blockIdx.x * kTilesPerBlock + threadIdx.x / kLanesPerTile;
  const int quarter = static_cast<int>(threadIdx.x) % kLanesPerTile;
  std::uint32_t sum = 0;
  if (t < problem.tiles) {
    const TilePixels pixels(problem, tile_at(problem, t));
    uint4 words[kPixels];
#pragma unroll
    for (int pixel = 0; pixel < kPixels; ++pixel) words[pixel] = load_chunk(pixels, pixel, quarter);
#pragma unroll
    for (int pixel = 0; pixel < kPixels; ++pixel) sum += checksum_part(words[pixel], pixel, quarter);
  }
  sum = device::group_sum<kLanesPerTile>(sum);
  if (t < problem.tiles && quarter == 0) problem.checksums[t] = sum;
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  const auto blocks = static_cast<unsigned>((problem.tiles() + kTilesPerBlock - 1) / kTilesPerBlock);
  work.add(kernel, {.grid = blocks, .block = kBlockThreads, .dependent = arguments.dependent_launch},
           device_problem(problem, arguments));
  return work;
}

}  // namespace tmaops::ops::tile_load::plain
