#include "ops/tile_load/maps.hpp"

namespace tmaops::ops::tile_load {

std::shared_ptr<const LevelMaps> make_maps(const Problem& problem, const Arguments& arguments, int rank) {
  auto maps = std::make_shared<LevelMaps>();
  auto address = reinterpret_cast<std::uintptr_t>(arguments.value);
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const LevelShape& level = problem.levels[l];
    tma::TensorMapSpec spec;
    spec.dtype = tma::ElementType::f16;
    spec.address = address;
    spec.dims = {kChannels, level.width, level.height, problem.batch};
    spec.strides = {kPixelBytes, level.width * kPixelBytes, problem.length() * kPixelBytes};
    spec.box = {kChannels, 2, 2, 1};
    spec.l2_promotion = tma::L2Promotion::b128;  // a row of the box
    if (rank == 3) {
      spec.dims = {level.width * kChannels, level.height, problem.batch};
      spec.strides.erase(spec.strides.begin());
      spec.box = {2 * kChannels, 2, 1};
      spec.l2_promotion = tma::L2Promotion::none;
    }
    if (rank == 5) {
      spec.dims.insert(spec.dims.begin() + 1, 1);
      spec.strides.insert(spec.strides.begin(), kPixelBytes);
      spec.box.insert(spec.box.begin() + 1, 1);
    }
    maps->level[l] = tma::encode(spec);
    address += static_cast<std::uintptr_t>(level.height * level.width * kPixelBytes);
  }
  return maps;
}

}  // namespace tmaops::ops::tile_load
