// Rows in memory: where they are, their chunks, and strips of output rows of any number of bytes.
#pragma once

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/resample/shared/sizes.hpp"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::gpu {

/// How rows lie in memory.
enum class RowsAre { chunks, any_bytes };

/// The row of an item, where the chunks of several rows are numbered through.
__device__ __forceinline__ int row_of(const Chunks& chunks, int item) {
  return chunks.count == 1 ? item : static_cast<int>(__umulhi(static_cast<std::uint32_t>(item), chunks.reciprocal));
}

/// Where a trajectory's rows are, in bytes.
struct RowBytes {
  const unsigned char* values;
  std::int64_t value_stride;
  unsigned char* output;
  std::int64_t output_stride;
};
template <class Value>
__device__ __forceinline__ RowBytes row_bytes(const Call& call, std::int64_t b) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Value));
  return {static_cast<const unsigned char*>(call.values.data) + call.values.first(b) * size,
          call.values.row_stride * size,
          static_cast<unsigned char*>(const_cast<void*>(call.output.data)) + call.output.first(b) * size,
          call.output.row_stride * size};
}

/// Copies bytes [phase, phase + count) of a strip to global memory whose first byte has the same phase modulo 16.
template <class Value>
__device__ __forceinline__ void store_strip(unsigned char* to, const unsigned char* strip, int phase, int count) {
  const int end = phase + count;
  for (int at = device::lane_index() * 16; at < end; at += device::kWarpThreads * 16) {
    if (at >= phase && at + 16 <= end) {
      device::store_16_streaming(to + (at - phase), *reinterpret_cast<const uint4*>(strip + at));
    } else {
      for (int byte = max(at, phase); byte < min(at + 16, end); byte += static_cast<int>(sizeof(Value)))
        *reinterpret_cast<Value*>(to + (byte - phase)) = *reinterpret_cast<const Value*>(strip + byte);
    }
  }
}

}  // namespace tmaops::ops::resample::gpu
