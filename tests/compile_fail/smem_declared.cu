// expect: more shared memory than smem
#include "device/shared_memory.cuh"

struct Storage {
  unsigned char bytes[2048];
};
__global__ void kernel() { tmaops::device::dynamic_shared<Storage, 1024>().bytes[0] = 1; }
