// The epilogue of a plain product with a 16-bit D, from registers: the four threads that hold a row's 32 columns
// exchange words so that each has 16 bytes in a row, and write those. It needs no shared memory and no barrier, which a
// block that lives for two microseconds feels. Writing the fragments as they are takes four times as many stores.
#pragma once

#include <type_traits>

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/epilogue_values.cuh"

namespace tmaops::ops::gemm {

/// Thread q of each four gives word i to thread i and gets word q of each.
__device__ __forceinline__ void exchange_in_four(std::uint32_t (&word)[4], int q) {
  const auto swap = [](std::uint32_t& low, std::uint32_t& high, bool upper, int distance) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? low : high, distance);
    (upper ? low : high) = got;
  };
  const bool odd = (q & 1) != 0;
  swap(word[0], word[1], odd, 1);
  swap(word[2], word[3], odd, 1);
  const bool upper = (q & 2) != 0;
  swap(word[0], word[2], upper, 2);
  swap(word[1], word[3], upper, 2);
}

/// What the threads of a row exchange: nothing where their accumulators are neighbours in D; words of all four, to
/// write 16 bytes each; or of two, to write 8 bytes, which is half of the shuffles and twice the stores.
enum class Exchange : std::uint8_t { none, in_fours, in_pairs };

/// A warp's 16 x n accumulators in 16-bit elements: `pack` makes a word of two. `store(half, group, words)` gets 16
/// bytes of row lane / 4 + 8 half, from column 32 group + 8 (lane % 4) on: what the four exchanged, or what the thread
/// itself has.
template <int n, Exchange exchange = Exchange::in_fours, class Pack, class Store>
__device__ __forceinline__ void store_in_fours(const float (&accumulators)[n / 2], const Pack& pack,
                                               const Store& store) {
  static_assert(n % 32 == 0);
#pragma unroll
  for (int group = 0; group < n / 32; ++group)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t word[4];
#pragma unroll
      for (int atom = 0; atom < 4; ++atom) {
        const float* from = accumulators + 16 * group + 4 * atom + 2 * half;
        word[atom] = pack(from[0], from[1]);
      }
      if constexpr (exchange != Exchange::none) exchange_in_four(word, device::lane_index() % 4);
      store(half, group, make_uint4(word[0], word[1], word[2], word[3]));
    }
}

/// A warp's 16 x n accumulators, which begin at (row, column), to D.
template <int n>
__device__ __forceinline__ void store_directly(const Epilogue& epilogue, const float (&accumulators)[n / 2], int row,
                                               int column, std::int64_t batch) {
  const int first_row = row + device::lane_index() / 4;
  const int first_column = column + 8 * (device::lane_index() % 4);
  auto* const d = static_cast<__half*>(epilogue.d) + batch * epilogue.d_batch_stride +
                  first_row * epilogue.d_row_stride + first_column;
  store_in_fours<n>(
      accumulators, [&](float low, float high) { return pack(low, high, epilogue.d_dtype); },
      [&](int half, int group, const uint4& words) {
        if (first_row + 8 * half < epilogue.rows && first_column + 32 * group < epilogue.columns)
          device::store_16(d + half * 8 * epilogue.d_row_stride + 32 * group, words);
      });
}

}  // namespace tmaops::ops::gemm
