// expect: nothing
// The right choices beside the wrong ones: this file must compile.
#include "device/pipeline.cuh"
#include "device/tile.cuh"
#include "device/wgmma.cuh"

using tmaops::device::Swizzle;
using tmaops::device::Tile;
static_assert(Tile<__half, Swizzle::none, 32, 2, 2>::bytes == 256);
static_assert(Tile<__half, Swizzle::b128, 64, 128>::alignment == 1024);
struct Stage {
  unsigned char bytes[48 * 1024];
};
static_assert(sizeof(tmaops::device::StagedStorage<Stage, 4>) <= tmaops::device::kMaxSharedBytes);
static_assert(tmaops::device::Wgmma<__half, 16>::half);
