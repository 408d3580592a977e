// Version 7: adds to tensor_block a barrier for every warp, so that no warp waits for another's tiles, and eight
// threads that issue one box each. One launch per level, each with a rank-4 map.
#include "device/tensor_copy.cuh"
#include "ops/tile_load/cuda/warp_ring.cuh"
#include "ops/tile_load/maps.hpp"

namespace tmaops::ops::tile_load::tensor_warp {
namespace {

struct BoxCopy {
  static constexpr int lanes = 1;
  static constexpr bool whole_tiles = true;
  const tma::TensorMap& map;
  __device__ __forceinline__ void issue(const Tile& tile, int, unsigned char* to, device::Barrier& barrier) const {
    device::tensor_load(to, &map, {0, tile.x, tile.y, static_cast<int>(tile.image)}, barrier);
  }
};

__global__ void __launch_bounds__(kBlockThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ tma::TensorMap map) {
  __shared__ RingStorage shared;
  if (threadIdx.x == 0) device::prefetch_tensor_map(&map);
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const BlockCycles cycles(problem);
  run_warp_ring(problem, shared, BoxCopy{map});
  cycles.stop();
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) { return ring_supports(problem, device); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return make_maps(problem, arguments, 4);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  if (problem.tiles() == 0) return;
  const auto& maps = *static_cast<const LevelMaps*>(arguments.prepared.get());
  for (int level = 0; level < static_cast<int>(problem.levels.size()); ++level) {
    const DeviceProblem one = level_problem(problem, arguments, level);
    launch_kernel<kernel>("tile_load: tensor_warp",
                          resident_grid(arguments, one.tiles, kTilesPerBlock, kRingBlocksPerMultiprocessor), stream,
                          one, maps.level[level]);
  }
}

}  // namespace tmaops::ops::tile_load::tensor_warp
