// Kernels for a plain product in whole chunks of 16 bytes (has_whole_chunks). A block that lives for two microseconds
// waits for the instructions and the constants before its first copy and before its first product, so these kernels
// read one line of parameters and have no branch for edges, batches or epilogues (docs/findings/gemm_models.md, L1).
#pragma once

#include "device/fence.cuh"
#include "ops/gemm/shared/chunk_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm {

/// What such a kernel is told. Strides count bytes from line to line; m, n and k are those of the product that is
/// computed, D itself or D^T.
struct ShortCall {
  const unsigned char* a = nullptr;
  const unsigned char* b = nullptr;
  unsigned char* d = nullptr;
  std::uint32_t a_stride = 0, b_stride = 0, d_stride = 0;
  std::uint32_t m = 0, n = 0, k = 0;
  TileOrder order;

  ShortCall(const RowMajorCall& call, const TileOrder& walk)
      : a(static_cast<const unsigned char*>(call.arguments.a)),
        b(static_cast<const unsigned char*>(call.arguments.b)),
        d(static_cast<unsigned char*>(call.arguments.d)),
        a_stride(static_cast<std::uint32_t>(2 * call.problem.a.leading_dimension())),
        b_stride(static_cast<std::uint32_t>(2 * call.problem.b.leading_dimension())),
        d_stride(static_cast<std::uint32_t>(2 * call.problem.d.leading_dimension())),
        m(static_cast<std::uint32_t>(call.problem.m)),
        n(static_cast<std::uint32_t>(call.problem.n)),
        k(static_cast<std::uint32_t>(call.problem.k)),
        order(walk) {}
};

/// Tiles of an operand whose lines are whole chunks. A block that lives for two microseconds feels every instruction
/// before its first copy, so there are no branches: what lies behind the last row or column repeats it, which nobody
/// stores, and what lies behind K is zero.
template <Major major, int extent, int threads>
class ClampedTile {
  static constexpr std::uint32_t kLine = kTileRowBytes<major, extent>;
  static constexpr std::uint32_t kChunks = kLine / 16;
  static constexpr std::uint32_t kLinesAtOnce = threads / kChunks;
  static constexpr std::uint32_t kPanelLines = major == Major::k ? extent : kDepth;
  static constexpr std::uint32_t kPanels = extent * kRowBytes / kLine / kPanelLines;
  static constexpr std::uint32_t kPointers =
      major == Major::k ? (kPanelLines + kLinesAtOnce - 1) / kLinesAtOnce : kPanels;
  static_assert(kLinesAtOnce % 8 == 0, "a thread's lines have the same place in the swizzle");
  static_assert(major == Major::k || kPanelLines % kLinesAtOnce == 0);

 public:
  /// Begins at row or column `mn` and at k. `stride`: bytes from line to line.
  __device__ __forceinline__ ClampedTile(const unsigned char* data, std::uint32_t stride, std::uint32_t mn,
                                         std::uint32_t mn_extent, std::uint32_t k, std::uint32_t k_extent,
                                         std::uint32_t thread)
      : stride_(stride), k_extent_(k_extent) {
    const std::uint32_t chunk = thread % kChunks;
    const std::uint32_t line = thread / kChunks;
    last_ = kPanelLines - kPanelLines % kLinesAtOnce + line < kPanelLines;
    place_ = device::swizzled<kTileSwizzle<major, extent>>(line * kLine + chunk * 16);
    k_ = k + (major == Major::k ? chunk * 8 : line);
#pragma unroll
    for (std::uint32_t i = 0; i < kPointers; ++i)
      if constexpr (major == Major::k)
        from_[i] = data + std::uint64_t{min(mn + line + i * kLinesAtOnce, mn_extent - 1)} * stride + 2 * k_;
      else
        from_[i] = data + 2 * min(mn + i * (kLine / 2) + chunk * 8, mn_extent - 8);
  }
  /// Fetches the tile that begins `k` after the first one; the compiler knows it.
  __device__ __forceinline__ void fetch(unsigned char* tile, std::uint32_t k) const {
#pragma unroll
    for (std::uint32_t line = 0; line < kPanelLines; line += kLinesAtOnce) {
      if (line + kLinesAtOnce > kPanelLines && !last_) continue;
      const std::uint32_t own = k_ + k + (major == Major::k ? 0 : line);
      const std::uint32_t bytes = own < k_extent_ ? 16 : 0;
#pragma unroll
      for (std::uint32_t panel = 0; panel < kPanels; ++panel) {
        const unsigned char* const from = major == Major::k
                                              ? from_[line / kLinesAtOnce] + 2 * k
                                              : from_[panel] + std::uint64_t{min(own, k_extent_ - 1)} * stride_;
        device::copy_async_16(tile + place_ + (panel * kPanelLines + line) * kLine, from, bytes);
      }
    }
  }

 private:
  const unsigned char* from_[kPointers];
  std::uint32_t stride_, k_extent_, k_, place_;
  bool last_;  // this thread has a line of the last ones
};

/// A D in 16 bits whose lines are whole chunks: its rows, or its columns where D^T is computed.
struct Lines {
  unsigned char* to;
  std::int64_t stride;  // bytes
  int rows, columns;    // of the product that is computed
};

/// All of a warp's 16 x n accumulators from (row, column) on to rows of D. `pack` makes a word of two. Behind the last
/// 32 columns: where 16 are left, each of four threads writes one piece; where 8 or 24 are left, one or three of them
/// write a piece of each half.
template <int n, class Pack>
__device__ __forceinline__ void store_all_rows(const Lines& d, const Pack& pack, const float (&accumulators)[n / 2],
                                               int row, int column) {
  constexpr int kWhole = n / 32 * 32;
  const int in_four = device::lane_index() % 4;
  row += device::lane_index() / 4;
  if constexpr (kWhole > 0) {
    const int first = column + 8 * in_four;
    unsigned char* const to = d.to + row * d.stride + 2 * first;
    store_in_fours<kWhole>(reinterpret_cast<const float(&)[kWhole / 2]>(accumulators), pack,
                           [&](int half, int group, const uint4& words) {
                             if (row + 8 * half < d.rows && first + 32 * group < d.columns)
                               device::store_16(to + half * 8 * d.stride + 64 * group, words);
                           });
  }
  if constexpr (n % 32 == 16) {
    const float* const from = accumulators + kWhole / 2;
    std::uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) word[i] = pack(from[2 * i], from[2 * i + 1]);
    exchange_in_four(word, in_four);
    row += in_four % 2 * 8;
    column += kWhole + in_four / 2 * 8;
    if (row < d.rows && column < d.columns)
      device::store_16(d.to + row * d.stride + 2 * column, make_uint4(word[0], word[1], word[2], word[3]));
  } else if constexpr (kWhole < n) {
    constexpr int kLeft = n % 32 / 8;
    column += kWhole + 8 * in_four;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t word[4] = {};
#pragma unroll
      for (int i = 0; i < kLeft; ++i) {
        const float* const from = accumulators + kWhole / 2 + 4 * i + 2 * half;
        word[i] = pack(from[0], from[1]);
      }
      exchange_in_four(word, in_four);
      if (in_four < kLeft && row + 8 * half < d.rows && column < d.columns)
        device::store_16(d.to + (row + 8 * half) * d.stride + 2 * column,
                         make_uint4(word[0], word[1], word[2], word[3]));
    }
  }
}

}  // namespace tmaops::ops::gemm
