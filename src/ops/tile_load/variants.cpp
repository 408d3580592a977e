// The table of the tile_load variants.
#include <vector>

#include "ops/tile_load/problem.hpp"

namespace tmaops::ops::tile_load {

#define TMAOPS_VARIANTS_INC "tile_load_variants.inc"
#include "core/variant_table.inc"

}  // namespace tmaops::ops::tile_load
