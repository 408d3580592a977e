// One row of any number of bytes, made of two: by a single thread, into shared memory.
#pragma once

#include "device/shared_memory.cuh"
#include "device/vector.cuh"
#include "ops/resample/forward/shared/narrow.hpp"
#include "ops/resample/shared/timeline.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::gpu {

/// One row made of two, in words of 4 bytes or in single values; several loads are under way before the first is used.
template <class Value, class Word, class Load>
__device__ __forceinline__ void combine_row(unsigned char* to, int row_bytes, float weight, const Load& load) {
  constexpr int kFlight = 4;
  constexpr int size = static_cast<int>(sizeof(Word));
  const int second = weight == 0.0f ? 0 : row_bytes;  // there may be no second row
  for (int base = 0; base < row_bytes; base += kFlight * size) {
    Word a[kFlight];
    Word b[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const int at = base + k * size;
      if (at < row_bytes) {
        a[k] = load(at, Word{});
        b[k] = load(at + second, Word{});
      }
    }
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const int at = base + k * size;
      if (at >= row_bytes) continue;
      if constexpr (std::is_same_v<Word, std::uint32_t>)
        *reinterpret_cast<Word*>(to + at) = device::select(weight == 0.0f, a[k], mix_word<Value>(a[k], b[k], weight));
      else
        *reinterpret_cast<Word*>(to + at) = mix(a[k], b[k], weight);
    }
  }
}

/// The same for two rows next to one another in shared memory, of a width known to the compiler: whole words whatever
/// the address of a row of 2-byte values is. `two`: whether the second row is there.
template <class Value, int row_bytes>
__device__ __forceinline__ void combine_known(unsigned char* to, const unsigned char* from, float weight, bool two) {
  constexpr int words = (2 * row_bytes + 2) / 4 + (row_bytes % 4 ? 1 : 0);
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto* word = reinterpret_cast<const std::uint32_t*>(from - (address & 3));
  std::uint32_t got[words];
  {
    const device::UnwrittenReads dropped(true);  // what is beside the rows, and a second row that is not there
#pragma unroll
    for (int k = 0; k < words; ++k) got[k] = word[k];
  }
  if constexpr (row_bytes % 4 != 0) {
    const auto shift = static_cast<unsigned>(address & 2) * 8;
#pragma unroll
    for (int k = 0; k + 1 < words; ++k) got[k] = __funnelshift_r(got[k], got[k + 1], shift);
  }
  if constexpr (row_bytes % 4 == 0) {
#pragma unroll
    for (int k = 0; k < row_bytes / 4; ++k)
      *reinterpret_cast<std::uint32_t*>(to + 4 * k) =
          device::select(!two, got[k], mix_word<Value>(got[k], got[k + row_bytes / 4], weight));
  } else {  // an odd number of values: the second row starts in the upper half of a word
    constexpr int half = row_bytes / 4;
    std::uint32_t mixed[half + 1];
#pragma unroll
    for (int k = 0; k <= half; ++k) {
      const std::uint32_t b = __funnelshift_r(got[half + k], k + half + 1 < words ? got[half + k + 1] : 0u, 16);
      mixed[k] = device::select(!two, got[k], mix_word<Value>(got[k], b, weight));
    }
    // Every other row begins in the upper half of a word: one value alone in front or at the end, else words.
    const bool upper = (reinterpret_cast<std::uintptr_t>(to) & 2) != 0;
    *reinterpret_cast<std::uint16_t*>(to + (upper ? 0 : 4 * half)) =
        static_cast<std::uint16_t>(upper ? mixed[0] : mixed[half]);
    unsigned char* words_to = to + (upper ? 2 : 0);
#pragma unroll
    for (int k = 0; k < half; ++k)
      *reinterpret_cast<std::uint32_t*>(words_to + 4 * k) =
          upper ? __funnelshift_r(mixed[k], mixed[k + 1], 16) : mixed[k];
  }
}

/// Writes one target's row to its place in a strip. Its rows are at `from` in shared memory if they are `here`, else at
/// `memory`.
template <class Value, int known_bytes>
__device__ __forceinline__ void combine_target(const NarrowCut& cut, unsigned char* to, const unsigned char* from,
                                               bool here, const unsigned char* memory, float weight) {
  const int width = known_bytes > 0 ? known_bytes : cut.row_bytes;
  if constexpr (known_bytes > 0)
    if (here) return combine_known<Value, known_bytes>(to, from, weight, weight != 0.0f);
  const auto combine = [&](const auto& load) {
    if (cut.words)
      combine_row<Value, std::uint32_t>(to, width, weight, load);
    else
      combine_row<Value, Value>(to, width, weight, load);
  };
  if (weight != weight) {  // there may be no row at all
    for (int byte = 0; byte < width; byte += static_cast<int>(sizeof(Value)))
      *reinterpret_cast<Value*>(to + byte) = narrow<Value>(missing());
  } else if (here) {
    combine([&](int byte, auto type) { return *reinterpret_cast<const decltype(type)*>(from + byte); });
  } else {
    combine([&](int byte, auto type) { return __ldg(reinterpret_cast<const decltype(type)*>(memory + byte)); });
  }
}

}  // namespace tmaops::ops::resample::gpu
