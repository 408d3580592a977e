// expect: wgmma's N is a multiple of 8 from 8 to 256
#include "device/wgmma.cuh"

static_assert(tmaops::device::Wgmma<__half, 12>::half);
