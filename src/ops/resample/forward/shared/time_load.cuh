// Timestamps on their way to shared memory by ordinary loads, which are under way sooner than a bulk copy.
#pragma once

#include "device/vector.cuh"

namespace tmaops::ops::resample::gpu {

/// Whole chunks on their way from global to shared memory by ordinary loads, all threads of the block together: the
/// first one of each thread is loaded at once, and stored when what else the thread has to load is under way. The
/// caller synchronises behind store().
template <int threads>
class TimeLoad {
 public:
  __device__ __forceinline__ TimeLoad(const unsigned char* from, int bytes)
      : from_(reinterpret_cast<const uint4*>(from)), units_(bytes / 16) {
    if (static_cast<int>(threadIdx.x) < units_) first_ = device::load_now(from_ + threadIdx.x);
  }
  __device__ __forceinline__ void store(unsigned char* to) const {
    auto* units = reinterpret_cast<uint4*>(to);
    auto i = static_cast<int>(threadIdx.x);
    if (i < units_) units[i] = first_;
#pragma unroll 1
    for (i += threads; i < units_; i += threads) units[i] = device::load_now(from_ + i);
  }

 private:
  const uint4* from_;
  int units_;
  uint4 first_{};
};

}  // namespace tmaops::ops::resample::gpu
