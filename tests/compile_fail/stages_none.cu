// expect: a pipeline has 1 to 32 stages
#include "device/pipeline.cuh"

static_assert(sizeof(tmaops::device::Ring<33>) > 0);
