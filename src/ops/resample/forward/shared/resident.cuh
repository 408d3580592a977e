// How many blocks a kernel is compiled to have on a multiprocessor.
#pragma once

namespace tmaops::ops::resample::gpu {

/// The second number of __launch_bounds__: `wanted` blocks per multiprocessor, or those whose threads it holds.
constexpr int resident_blocks(int threads, int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
  constexpr int most = 1536;
#else
  constexpr int most = 2048;
#endif
  return wanted * threads > most ? most / threads : wanted;
}

}  // namespace tmaops::ops::resample::gpu
