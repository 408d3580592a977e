// Version 8: adds to tensor_warp that all levels run in one launch, through one rank-5 map per level with the axes of
// deformable attention's value: {channels, heads, width, height, batch}.
#include "study/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_levels {
namespace {

__global__ void __launch_bounds__(kRingThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ LevelMaps maps) {
  run_levels<5, kSite.smem>(problem, maps);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, ring_shape(problem, problem.tiles()),
                         make_maps(problem, arguments, 5));
}

}  // namespace tmaops::ops::tile_load::tensor_levels
