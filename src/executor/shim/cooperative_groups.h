// Host twin of what kernels use of <cooperative_groups.h>: the threads of a block.
#pragma once

#include "executor/interface.hpp"

namespace cooperative_groups {

struct thread_block {
  unsigned thread_rank() const { return threadIdx.x; }
  unsigned size() const { return blockDim.x; }
  void sync() const { __syncthreads(); }
};
inline thread_block this_thread_block() { return {}; }

}  // namespace cooperative_groups
