// expect: a box has 1 to 5 dimensions
#include <cuda_fp16.h>

#include "device/tile.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::none, 8, 1, 1, 1, 1, 1>::bytes > 0);
