// expect: are the dimensions listed outermost first
#include <cuda_fp16.h>

#include "device/tile.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::none, 2, 2, 32>::bytes > 0);
