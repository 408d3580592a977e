// The search where a warp's targets lie among few stamps: the warp holds 32 of them, one per lane. No shared memory and
// no barrier stand between the loads of the stamps and those of the rows: one latency of the memory, and some 30
// instructions.
#pragma once

#include "device/warp.cuh"
#include "ops/resample/cuda/search.cuh"

namespace tmaops::ops::resample::cuda {

struct WarpStamps {
  static constexpr int kCount = device::kWarpThreads;

  int first;  // sample of lane 0
  float mine;

  /// The kCount samples from `wanted` on, or the nearest that exist. `samples` >= kCount.
  __device__ __forceinline__ WarpStamps(const float* stamps, int samples, int wanted)
      : first(max(min(wanted, samples - kCount), 0)), mine(device::load_now(stamps + first + device::lane_index())) {}

  /// Each lane for its own q; all lanes of the warp.
  __device__ __forceinline__ Interval<float> find(float q) const {
    int until = 0;  // stamps at or before q, but the last
#pragma unroll
    for (int half = kCount / 2; half > 0; half /= 2) until += at(until + half - 1) <= q ? half : 0;
    const int i = max(until - 1, 0);
    return {first + i, at(i), at(i + 1)};
  }
  /// Whether the interval of q is another one, which the warp does not hold.
  __device__ __forceinline__ bool misses(const Interval<float>& in, int samples, float q) const {
    return (q < in.x && first > 0) || (q >= in.next && first + kCount < samples);
  }
  /// The sample to begin with for q, which is not among these. Some of the warp's other targets are near it.
  __device__ __forceinline__ int moved(int samples, float q) const {
    constexpr int kFromEnd = 12;
    const float low = at(0);
    const float high = at(kCount - 1);
    const bool below = q < low;
    const auto most = static_cast<float>(samples);
    const float far = (q - (below ? low : high)) * __fdividef(static_cast<float>(kCount - 1), high - low);
    const auto by = static_cast<int>(fminf(fmaxf(far, -most), most));  // any floats give a place inside
    return first + (below ? min(by - (kCount - kFromEnd), -1) : max(by + kCount - kFromEnd, 1));
  }

  __device__ __forceinline__ float at(int lane) const { return __shfl_sync(0xffffffffu, mine, lane); }
};

/// For lanes whose `in` is `missed`: the warp moves to where the first of them is, some times. With random
/// stamps that is an ordinary thing; kept out of the way of the others.
inline __device__ __noinline__ Interval<float> find_elsewhere(const float* stamps, int samples, WarpStamps held,
                                                              Interval<float> in, float q, bool missed) {
  constexpr int kRounds = 4;
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    const unsigned who = __ballot_sync(0xffffffffu, missed);
    if (who == 0) return in;
    held =
        WarpStamps(stamps, samples, held.moved(samples, __shfl_sync(0xffffffffu, q, __ffs(static_cast<int>(who)) - 1)));
    const Interval<float> found = held.find(q);
    if (!missed) continue;
    in = found;
    missed = held.misses(in, samples, q);
  }
  if (missed) in = interval_outside(stamps, samples, in.i, 0.0f, q);
  return in;
}

/// The interval of each lane's q, wanted among the stamps from `wanted` on; all lanes of the warp.
__device__ __forceinline__ Interval<float> find_in_warp(const float* stamps, int samples, const WarpStamps& held,
                                                        float q) {
  const Interval<float> in = held.find(q);
  const bool missed = held.misses(in, samples, q);
  if (!__any_sync(0xffffffffu, missed)) return in;
  return find_elsewhere(stamps, samples, held, in, q, missed);
}

}  // namespace tmaops::ops::resample::cuda
