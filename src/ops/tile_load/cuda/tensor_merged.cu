// Version 9: adds to tensor_levels that channels and width are one axis of the map: a tile is 2 rows of 128 bytes
// instead of 4 pixels of 64, and the fill outside still comes out right, since a pixel is 32 consecutive elements of a
// row. (Only with one head: with more, the pixels of a head do not lie side by side.)
#include "device/tensor_copy.cuh"
#include "ops/tile_load/cuda/warp_ring.cuh"
#include "ops/tile_load/maps.hpp"

namespace tmaops::ops::tile_load::tensor_merged {
namespace {

struct BoxCopy {
  static constexpr int lanes = 1;
  static constexpr bool whole_tiles = true;
  const LevelMaps& maps;
  __device__ __forceinline__ void issue(const Tile& tile, int, unsigned char* to, device::Barrier& barrier) const {
    device::tensor_load(to, &maps.level[tile.level], {tile.x * kChannels, tile.y, static_cast<int>(tile.image)},
                        barrier);
  }
};

__global__ void __launch_bounds__(kBlockThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ LevelMaps maps) {
  __shared__ RingStorage shared;
  if (threadIdx.x < problem.level_count) device::prefetch_tensor_map(&maps.level[threadIdx.x]);
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const BlockCycles cycles(problem);
  run_warp_ring(problem, shared, BoxCopy{maps});
  cycles.stop();
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) { return ring_supports(problem, device); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return make_maps(problem, arguments, 3);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  if (problem.tiles() == 0) return;
  launch_kernel<kernel>("tile_load: tensor_merged",
                        resident_grid(arguments, problem.tiles(), kTilesPerBlock, kRingBlocksPerMultiprocessor), stream,
                        device_problem(problem, arguments), *static_cast<const LevelMaps*>(arguments.prepared.get()));
}

}  // namespace tmaops::ops::tile_load::tensor_merged
