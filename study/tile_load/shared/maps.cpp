#include "study/tile_load/shared/maps.hpp"

namespace tmaops::ops::tile_load {

LevelMaps make_maps(const Problem& problem, const Arguments& arguments, int rank) {
  LevelMaps maps;
  auto address = reinterpret_cast<std::uintptr_t>(arguments.value);
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const LevelShape& level = problem.levels[l];
    tma::TensorMapSpec spec;
    spec.dtype = tma::ElementType::f16;
    spec.address = address;
    const std::int64_t row = level.width * kPixelBytes;
    const std::int64_t image = problem.length() * kPixelBytes;
    spec.l2_promotion = tma::L2Promotion::b128;  // a row of the box
    if (rank == 4) {
      spec.dims = {kChannels, level.width, level.height, problem.batch};
      spec.strides = {kPixelBytes, row, image};
      spec.box = {kChannels, 2, 2, 1};
    } else {
      spec.dims = {kChannels, 1, level.width, level.height, problem.batch};
      spec.strides = {kPixelBytes, kPixelBytes, row, image};
      spec.box = {kChannels, 1, 2, 2, 1};
    }
    maps.level[l] = tma::encode(spec);
    address += static_cast<std::uintptr_t>(level.height * level.width * kPixelBytes);
  }
  return maps;
}

}  // namespace tmaops::ops::tile_load
