// Version 9: adds to tensor_levels that channels and width are one axis of the map: a tile is 2 rows of 128 bytes
// instead of 4 pixels of 64, and the fill outside still comes out right, since a pixel is 32 consecutive elements of a
// row. (Only with one head: with more, the pixels of a head do not lie side by side.)
#include "ops/tile_load/shared/tensor_box.cuh"

namespace tmaops::ops::tile_load::tensor_merged {
namespace {

__global__ void __launch_bounds__(kRingThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem, const __grid_constant__ LevelMaps maps) {
  run_levels<3, kSite.smem>(problem, maps);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return resident_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return levels_work(kernel, kSite, problem, arguments, make_maps(problem, arguments, 3));
}

}  // namespace tmaops::ops::tile_load::tensor_merged
