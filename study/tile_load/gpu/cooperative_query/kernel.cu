// The manual counterpart of `tensor_query`, as the published reports describe loading by hand: a block of 256 threads
// per query (and level), 32 threads load one tile of 256 bytes together, 8 bytes each by read-only loads, to shared
// memory aligned to 128 bytes, and the warp waits for itself alone. The eight warps of a block load eight points. It
// differs in one point: four threads of the warp sum its tile up, which makes the load observable.
#include "study/tile_load/shared/query_blocks.cuh"

namespace tmaops::ops::tile_load::cooperative_query {
namespace {

constexpr std::uint32_t kWarps = kQueryThreads / device::kWarpThreads;
constexpr int kPiecesPerPixel = kPixelBytes / static_cast<int>(sizeof(uint2));

__global__ void __launch_bounds__(kQueryThreads) kernel(const __grid_constant__ DeviceProblem problem) {
  auto& tiles = device::dynamic_shared<QueryTiles, kSite.smem>().tile;
  const BlockRun run(problem);
  const int lane = device::lane_index();
  const std::uint32_t first = blockIdx.x * problem.points.divisor;
  for (auto p = static_cast<std::uint32_t>(device::warp_index()); p < problem.points.divisor; p += kWarps) {
    const TilePixels pixels(problem, tile_at(problem, first + p));
    const int pixel = lane / kPiecesPerPixel;
    const int byte = lane % kPiecesPerPixel * static_cast<int>(sizeof(uint2));
    uint2 piece = make_uint2(0, 0);
    if (pixels.inside(pixel)) piece = __ldg(reinterpret_cast<const uint2*>(pixels.at(pixel) + byte));
    *reinterpret_cast<uint2*>(tiles[p] + pixel * kPixelBytes + byte) = piece;
    __syncwarp();
    const std::uint32_t sum =
        device::group_sum<kLanesPerTile>(lane < kLanesPerTile ? checksum_of(tiles[p], lane, 0) : 0);
    if (lane == 0) problem.checksums[first + p] = sum;
  }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return query_blocks_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  work.add(kernel, query_blocks(problem, arguments), device_problem(problem, arguments));
  return work;
}

}  // namespace tmaops::ops::tile_load::cooperative_query
