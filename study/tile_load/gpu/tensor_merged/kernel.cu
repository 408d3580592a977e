// Version 9: adds to tensor_levels that channels and width are one axis of the map. A tile is then 2 rows of 128 bytes
// instead of 4 pixels of 64. Pixels outside are still zero, since a pixel is 32 consecutive elements of a row. With
// several heads the pixels of a head do not lie side by side, so this is for one head.
#include "study/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_merged {
namespace {

__global__ void __launch_bounds__(kRingThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ LevelMaps maps) {
  run_levels<3, kSite.smem>(problem, maps);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, ring_shape(problem, problem.tiles()),
                         make_maps(problem, arguments, 3));
}

}  // namespace tmaops::ops::tile_load::tensor_merged
