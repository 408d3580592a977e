// Tensor maps of the levels: one per level, since the levels have different widths.
#pragma once

#include "offers/tile_load.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::ops::tile_load {

struct LevelMaps {
  tma::TensorMap level[kMaxLevels];
};

/// Innermost first: {channels, width, height, batch} for rank 4, {channels, 1, width, height, batch} for rank 5, where
/// the 1 is the head of deformable attention's value. Box: 2 x 2 pixels of all channels; zero outside.
LevelMaps make_maps(const Problem& problem, const Arguments& arguments, int rank);

}  // namespace tmaops::ops::tile_load
