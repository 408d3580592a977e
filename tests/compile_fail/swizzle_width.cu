// expect: must be as wide as the swizzle
#include <cuda_fp16.h>

#include "device/tile.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::b128, 32, 64>::bytes > 0);
