// Tiles fetched by the threads themselves, for any strides and any alignment: cp.async of 16, 8 or 4 bytes where rows
// are contiguous and aligned to that, single elements through registers otherwise. What lies outside is zero.
#pragma once

#include "ops/gemm/shared/thread_operand.cuh"
#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm {

/// What kernels are told that take every problem, by blocks that go through the batches.
struct ThreadJob {
  ThreadOperand a;
  ThreadOperand b;
  Epilogue epilogue;
  TileOrder order;
  int k_tiles = 0;
  int batch = 0;
  bool chunks = false;  // both operands come in pieces of 16 bytes

  /// Tiles of rows x columns.
  ThreadJob(const RowMajorCall& call, int rows, int columns)
      : a(thread_a(call)),
        b(thread_b(call)),
        epilogue(call.epilogue()),
        order(call.problem, rows, columns),
        k_tiles(call.k_tiles()),
        batch(static_cast<int>(call.problem.batch)),
        chunks(a.width == 16 && b.width == 16) {}
};

/// One thread's part of fetching tiles of `extent` rows of A or columns of B: always the same places in the tile, 64 of
/// k further each time. Addresses move by additions only: working them out anew for each tile made the loop three times
/// as long as its products.
template <Major major, int extent, int threads>
class ThreadTile {
  static constexpr int kLine = kTileRowBytes<major, extent>;
  static constexpr int kChunks = kLine / 16;
  static constexpr int kLines = extent * kRowBytes / kLine;  // rows of the tile, all panels
  static constexpr int kLinesAtOnce = threads / kChunks;
  static constexpr int kPanelLines = major == Major::k ? extent : kDepth;
  static constexpr int kPanelElements = kLine / 2;
  static_assert(kLinesAtOnce % 8 == 0, "a thread's rows have the same place in the swizzle");
  static_assert(kPanelLines % kLinesAtOnce == 0);

 public:
  /// Begins at row or column `mn` and k = 0. `data` is the operand's, of the batch.
  __device__ __forceinline__ ThreadTile(const ThreadOperand& from, const unsigned char* data, int mn, int thread)
      : inner_stride_(from.inner_stride), outer_step_(kLinesAtOnce * from.outer_stride), width_(from.width) {
    const int chunk = thread % kChunks;
    first_ = thread / kChunks;
    place_ = static_cast<int>(
        device::swizzled<kTileSwizzle<major, extent>>(static_cast<std::uint32_t>(first_ * kLine + chunk * 16)));
    const int inner = (major == Major::k ? 0 : mn) + chunk * 8;
    const int outer = (major == Major::k ? mn : 0) + first_;
    inner_left_ = from.inner - inner;
    outer_left_ = from.outer - outer;
    at_ = data + inner * inner_stride_ + outer * from.outer_stride;
    k_step_ = kDepth * (major == Major::k ? inner_stride_ : from.outer_stride);
  }
  /// Fetches the next tile. cp.async copies belong to the thread's current group; elements that pass through registers
  /// are in shared memory when this returns.
  __device__ __forceinline__ void fetch(unsigned char* tile) {
    unsigned char* const to = tile + place_;
    if (width_ == 16) {
#pragma unroll 2
      for (int line = 0; line < kLines; line += kLinesAtOnce)
        device::copy_async_16(to + line * kLine, source(line), static_cast<std::uint32_t>(2 * count(line)));
    } else if (width_ == 8) {
      fetch_small<8>(to);
    } else if (width_ == 4) {
      fetch_small<4>(to);
    } else {
#pragma unroll 2
      for (int line = 0; line < kLines; line += kLinesAtOnce)
        *reinterpret_cast<uint4*>(to + line * kLine) = elements(source(line), count(line));
    }
    advance();
  }
  /// Half of the next tile where the width is 16, without a branch: the compiler puts the copies between other work.
  /// `whole`: every tile lies inside the matrix. The halves are fetched in order.
  template <int half, bool whole>
  __device__ __forceinline__ void fetch_half(unsigned char* tile) {
    constexpr int kBegin = half * kLines / 2;
    const unsigned char* from = source(kBegin);
#pragma unroll
    for (int line = kBegin; line < kBegin + kLines / 2; line += kLinesAtOnce) {
      unsigned char* const to = tile + place_ + line * kLine;
      if constexpr (whole)
        device::copy_async_16(to, from);
      else
        device::copy_async_16(to, from, static_cast<std::uint32_t>(2 * count(line)));
      from += outer_step_;
    }
    if constexpr (half == 1) advance();
  }

 private:
  __device__ __forceinline__ void advance() {
    at_ += k_step_;
    (major == Major::k ? inner_left_ : outer_left_) -= kDepth;
  }
  __device__ __forceinline__ const unsigned char* source(int line) const {
    return at_ + line % kPanelLines / kLinesAtOnce * outer_step_ + line / kPanelLines * kPanelElements * inner_stride_;
  }
  /// Elements of this thread's chunk in a line that exist, 0 to 8.
  __device__ __forceinline__ int count(int line) const {
    const int inner = min(8, max(0, inner_left_ - line / kPanelLines * kPanelElements));
    return line % kPanelLines < outer_left_ ? inner : 0;
  }
  template <int size>
  __device__ __forceinline__ void fetch_small(unsigned char* to) const {
#pragma unroll 1
    for (int line = 0; line < kLines; line += kLinesAtOnce)
#pragma unroll
      for (int part = 0; part < 16; part += size)
        device::copy_async_small<size>(to + line * kLine + part, source(line) + part,
                                       static_cast<std::uint32_t>(max(0, min(size, 2 * count(line) - part))));
  }
  __device__ __forceinline__ uint4 elements(const unsigned char* from, int count) const {
    std::uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto element = [&](int j) -> std::uint32_t {
        return j < count ? __ldg(reinterpret_cast<const std::uint16_t*>(from + j * inner_stride_)) : 0u;
      };
      word[i] = element(2 * i) | element(2 * i + 1) << 16;
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
  }

  const unsigned char* at_;
  std::int64_t inner_stride_, outer_step_, k_step_;
  int inner_left_, outer_left_;  // elements from this thread's chunk and line on that exist
  int first_, place_, width_;
};

}  // namespace tmaops::ops::gemm
