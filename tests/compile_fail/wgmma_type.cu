// expect: wgmma here takes f16 or bf16
#include "device/wgmma.cuh"

static_assert(!tmaops::device::Wgmma<float, 64>::half);
