// expect: more shared memory than a block can have
#include "device/pipeline.cuh"

struct Stage {
  unsigned char bytes[48 * 1024];
};
static_assert(sizeof(tmaops::device::StagedStorage<Stage, 5>) > 0);
