// The epilogue of a plain product with a 16-bit D, from registers: the four threads that hold a row's 32 columns
// exchange words so that each has 16 bytes in a row, and write those. No shared memory and no barrier, which a block
// that lives for two microseconds feels; writing the fragments as they are takes four times as many stores (1.3 us at
// 1024). Where a kernel may choose the order of its tile's columns nothing is exchanged: column_in_row() in
// whole_tiles.cuh.
#pragma once

#include <type_traits>

#include "device/vector.cuh"
#include "ops/gemm/cuda/epilogue.cuh"

namespace tmaops::ops::gemm::cuda {

/// Whether it applies: whole 16-byte pieces of rows.
inline bool stores_directly(const Epilogue& epilogue) {
  return epilogue.plain && epilogue.vectors && epilogue.d_dtype != DType::f32 && epilogue.columns % 8 == 0;
}

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

/// A warp's 16 x n sums in 16-bit elements: `pack` makes a word of two. `store(half, group, words)` gets 16 bytes of
/// row lane / 4 + 8 half, from column 32 group + 8 (lane % 4) on; without `exchange` what the thread itself has.
template <int n, bool exchange = true, class Pack, class Store>
__device__ __forceinline__ void store_in_fours(const float (&sums)[n / 2], const Pack& pack, const Store& store) {
  static_assert(n % 32 == 0);
#pragma unroll
  for (int group = 0; group < n / 32; ++group)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t word[4];
#pragma unroll
      for (int atom = 0; atom < 4; ++atom) {
        const float* from = sums + 16 * group + 4 * atom + 2 * half;
        word[atom] = pack(from[0], from[1]);
      }
      if constexpr (exchange) exchange_in_four(word, device::lane_index() % 4);
      store(half, group, make_uint4(word[0], word[1], word[2], word[3]));
    }
}

/// A warp's 16 x n sums, which begin at (row, column), to D.
template <int n>
__device__ __forceinline__ void store_directly(const Epilogue& epilogue, const float (&sums)[n / 2], int row,
                                               int column, std::int64_t batch) {
  const int first_row = row + device::lane_index() / 4;
  const int first_column = column + 8 * (device::lane_index() % 4);
  auto* const d = static_cast<__half*>(epilogue.d) + batch * epilogue.d_batch_stride +
                  first_row * epilogue.d_row_stride + first_column;
  store_in_fours<n>(
      sums, [&](float low, float high) { return pack(low, high, epilogue.d_dtype); },
      [&](int half, int group, const uint4& words) {
        if (first_row + 8 * half < epilogue.rows && first_column + 32 * group < epilogue.columns)
          device::store_16(d + half * 8 * epilogue.d_row_stride + 32 * group, words);
      });
}

/// The same for the 64 x n sums of a warpgroup, which lie inside D, and elements of type T. `stride`: bytes from row to
/// row. `neighbours`: a thread's sums of a row, for each 32 columns or for all 16, are neighbours in D. Where they are
/// not, and with `in_pairs`, two threads instead of four exchange words and write 8 bytes: half of the shuffles, twice
/// the stores (transposed operands at 256: 1.63 to 1.61 us; at 512 2.24 to 2.25, at 1024 5.18 to 5.28).
template <class T, int n, bool neighbours, bool in_pairs>
__device__ __forceinline__ void store_whole(unsigned char* d, std::uint32_t stride, const float (&sums)[n / 2],
                                            std::uint32_t row, std::uint32_t column) {
  constexpr DType dtype = std::is_same_v<T, __half> ? DType::f16 : DType::bf16;
  const std::uint32_t lane = threadIdx.x % device::kWarpThreads;
  const std::uint32_t warp = threadIdx.x / device::kWarpThreads;
  d += (row + warp * kStagedRows + lane / 4) * stride + 2 * column;
  if constexpr (n == 16) {
    std::uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) word[i] = pack(sums[2 * i], sums[2 * i + 1], dtype);
    if constexpr (neighbours) {
      d += 8 * (lane % 4);
      *reinterpret_cast<uint2*>(d) = make_uint2(word[0], word[2]);
      *reinterpret_cast<uint2*>(d + 8 * stride) = make_uint2(word[1], word[3]);
    } else {  // the four threads take two pieces of two rows
      exchange_in_four(word, static_cast<int>(lane % 4));
      device::store_16(d + lane % 2 * 8 * stride + lane % 4 / 2 * 16, make_uint4(word[0], word[1], word[2], word[3]));
    }
  } else if constexpr (in_pairs && !neighbours) {
    const bool odd = lane % 2 != 0;
    d += 8 * (lane % 4 / 2) + 16 * (lane % 2);
#pragma unroll
    for (int pair = 0; pair < n / 16; ++pair)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* from = sums + 8 * pair + 2 * half;
        std::uint32_t word[2] = {pack(from[0], from[1], dtype), pack(from[4], from[5], dtype)};
        const std::uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? word[0] : word[1], 1);
        (odd ? word[0] : word[1]) = got;
        *reinterpret_cast<uint2*>(d + static_cast<std::uint32_t>(half) * 8 * stride + 32 * pair) =
            make_uint2(word[0], word[1]);
      }
  } else {
    d += 16 * (lane % 4);
    store_in_fours<n, !neighbours>(
        sums, [](float low, float high) { return pack(low, high, dtype); },
        [&](int half, int group, const uint4& words) {
          device::store_16(d + static_cast<std::uint32_t>(half) * 8 * stride + 64 * group, words);
        });
  }
}

}  // namespace tmaops::ops::gemm::cuda
