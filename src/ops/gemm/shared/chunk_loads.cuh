// Tiles fetched by the threads, 16 bytes at a time and nothing else: address arithmetic in front of a copy is what
// kernels without a fetching warp wait for. One pointer per line of the tile that the thread copies; a tile that lies
// inside the matrix takes copies alone, with constant offsets where k is contiguous and the caller's loop is unrolled.
#pragma once

#include "ops/gemm/shared/thread_operand.cuh"

namespace tmaops::ops::gemm {

template <Major major, int extent, int threads>
class ChunkTile {
  static constexpr int kLine = kTileRowBytes<major, extent>;
  static constexpr int kChunks = kLine / 16;
  static constexpr int kLinesAtOnce = threads / kChunks;
  static constexpr int kCopies = extent * kRowBytes / kLine / kLinesAtOnce;
  static constexpr int kPanelLines = major == Major::k ? extent : kDepth;
  static constexpr int kPanelElements = kLine / 2;
  static_assert(kLinesAtOnce % 8 == 0, "a thread's lines have the same place in the swizzle");
  static_assert(kPanelLines % kLinesAtOnce == 0);

 public:
  /// Begins at row or column `mn` and at k, and will fetch up to `k_end`. `from` has width 16; `data` is the operand's,
  /// of the batch.
  __device__ __forceinline__ ChunkTile(const ThreadOperand& from, const unsigned char* data, int mn, int k, int k_end,
                                       int thread) {
    const int chunk = thread % kChunks;
    const int first = thread / kChunks;
    place_ = static_cast<int>(
        device::swizzled<kTileSwizzle<major, extent>>(static_cast<std::uint32_t>(first * kLine + chunk * 16)));
    const int inner = (major == Major::k ? k : mn) + chunk * 8;
    const int outer = (major == Major::k ? mn : k) + first;
    inner_left_ = from.inner - inner;
    outer_left_ = from.outer - outer;
    const int k_extent = major == Major::k ? from.inner : from.outer;
    inside_ = mn + extent <= (major == Major::k ? from.outer : from.inner);
    whole_ = inside_ && k_end <= k_extent;
    k_left_ = k_extent - k;
    k_step_ = major == Major::k ? kRowBytes : kDepth * from.outer_stride;
    const unsigned char* at = data + 2 * inner + outer * from.outer_stride;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      line_[i] = at;
      const bool panel_ends = (i + 1) * kLinesAtOnce % kPanelLines == 0;
      at += panel_ends ? 2 * kPanelElements - (kPanelLines - kLinesAtOnce) * from.outer_stride
                       : kLinesAtOnce * from.outer_stride;
    }
  }
  /// Whether every tile up to k_end lies inside the matrix in whole; the same for all threads.
  __device__ __forceinline__ bool whole() const { return whole_; }

  /// Fetches the next tile, which is whole.
  __device__ __forceinline__ void fetch_whole(unsigned char* tile) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) device::copy_async_16(tile + place_ + i * kLinesAtOnce * kLine, line_[i] + done_);
    done_ += k_step_;
  }
  /// Fetches the next tile; what lies outside is zero.
  __device__ __forceinline__ void fetch_edge(unsigned char* tile) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int inner = min(8, max(0, inner_left_ - i * kLinesAtOnce / kPanelLines * kPanelElements));
      const int count = i * kLinesAtOnce % kPanelLines < outer_left_ ? inner : 0;
      device::copy_async_16(tile + place_ + i * kLinesAtOnce * kLine, line_[i] + done_,
                            static_cast<std::uint32_t>(2 * count));
    }
    done_ += k_step_;
    (major == Major::k ? inner_left_ : outer_left_) -= kDepth;
  }
  /// Fetches the next tile, whole or not.
  __device__ __forceinline__ void fetch(unsigned char* tile) {
    if (inside_ && k_left_ >= kDepth) {
      fetch_whole(tile);
      (major == Major::k ? inner_left_ : outer_left_) -= kDepth;
    } else {
      fetch_edge(tile);
    }
    k_left_ -= kDepth;
  }

 private:
  const unsigned char* line_[kCopies];
  std::int64_t done_ = 0, k_step_;
  int inner_left_, outer_left_;  // elements from this thread's chunk and line on that exist
  int place_;
  int k_left_;  // for fetch()
  bool inside_, whole_;
};

}  // namespace tmaops::ops::gemm
