// The output row of one target by a group of neighbouring threads, which stride along it.
#pragma once

#include "device/vector.cuh"
#include "ops/resample/shared/call.cuh"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::gpu {

/// Writes target `t` of trajectory `b`; `thread` of `threads`. `chunks`: rows are multiples of 16 bytes at multiples of
/// 16 bytes, and a thread takes 16 bytes at a time instead of a value.
template <class Value, int threads>
__device__ __forceinline__ void write_strided_row(const Call& call, std::int64_t b, int t, const Place<int>& at,
                                                  int thread, bool chunks) {
  // The second row is the first one where only one is needed.
  const auto* from =
      static_cast<const Value*>(call.values.data) + call.values.first(b) + at.row * call.values.row_stride;
  const Value* second = fabsf(at.weight) > 0.0f ? from + call.values.row_stride : from;
  auto* to = call.output.at<Value>(b, t);
  const bool is_missing = at.weight != at.weight;  // there may be no row at all
  if (chunks) {
    constexpr int kValues = 16 / static_cast<int>(sizeof(Value));
#pragma unroll 2
    for (std::int64_t channel = thread * kValues; channel < call.channels; channel += threads * kValues) {
      const uint4 a = is_missing ? uint4{} : device::load_16(from + channel);
      const uint4 c = is_missing ? uint4{} : device::load_16(second + channel);
      device::store_16_streaming(to + channel, mix_16<Value>(a, c, at.weight));
    }
  } else {
#pragma unroll 2
    for (std::int64_t channel = thread; channel < call.channels; channel += threads)
      to[channel] =
          is_missing ? narrow<Value>(missing()) : mix(__ldg(from + channel), __ldg(second + channel), at.weight);
  }
}

}  // namespace tmaops::ops::resample::gpu
