// How many blocks a kernel is compiled to have on a multiprocessor.
#pragma once

#include "device/architecture.cuh"

namespace tmaops::ops::resample::gpu {

/// The second number of __launch_bounds__: `wanted` blocks per multiprocessor, or those whose threads it holds.
constexpr int resident_blocks(int threads, int wanted) {
  return wanted * threads > device::kResidentThreads ? device::kResidentThreads / threads : wanted;
}

}  // namespace tmaops::ops::resample::gpu
