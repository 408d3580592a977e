// expect: more shared memory than smem
#define TMAOPS_VARIANT_SMEM 1024
#include "device/shared_memory.cuh"

struct Storage {
  unsigned char bytes[2048];
};
__global__ void kernel() { tmaops::device::dynamic_shared<Storage>().bytes[0] = 1; }
