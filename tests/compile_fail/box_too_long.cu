// expect: every box dimension is 1 to 256 elements
#include <cuda_fp16.h>

#include "device/tile.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::none, 64, 257>::bytes > 0);
