// expect: would start out of phase
#include <cuda_fp16.h>

#include "device/tile.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::b128, 64, 12>::bytes > 0);
