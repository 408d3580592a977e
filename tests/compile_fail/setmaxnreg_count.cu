// expect: setmaxnreg takes 24 to 256 in steps of 8
#include "device/warp.cuh"

__global__ void kernel() { tmaops::device::decrease_registers<100>(); }
