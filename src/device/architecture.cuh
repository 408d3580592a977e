// What the GPU has that the code is being compiled for. One source serves all of them.
#pragma once

namespace tmaops::device {

#ifdef __CUDA_ARCH__
inline constexpr int kArchitecture = __CUDA_ARCH__;
#else
inline constexpr int kArchitecture = 900;  // the host's half of a source has no code of kernels
#endif

/// Dependent launches, bulk copies and additions of 16 bytes came with compute capability 9.0.
inline constexpr bool kSinceHopper = kArchitecture >= 900;

/// Kernels were tuned there: the same code takes some registers more on other GPUs.
inline constexpr bool kOnHopper = kArchitecture == 900;

/// Threads that a multiprocessor holds (CUDA programming guide, "Technical Specifications per Compute Capability").
inline constexpr int kResidentThreads =
    kArchitecture == 860 || kArchitecture == 890 || kArchitecture >= 1200 ? 1536 : 2048;

}  // namespace tmaops::device
