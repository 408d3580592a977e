// Version 7: adds to tensor_block a ring of stages for every warp, so that no warp waits for another's tiles. Eight
// threads of a warp issue one box each. One launch per level, each with a rank-4 map.
#include "study/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_warp {
namespace {

__global__ void __launch_bounds__(kRingThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ tma::TensorMap map) {
  if (threadIdx.x == 0) device::prefetch_tensor_map(&map);
  const BlockRun run(problem);
  run_warp_ring<kSite.smem>(problem, BoxCopy<4, Levels::one>{&map});
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return each_level_work(kernel, kSite, problem, arguments, make_maps(problem, arguments, 4), ring_shape);
}

}  // namespace tmaops::ops::tile_load::tensor_warp
