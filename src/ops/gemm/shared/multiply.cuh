// The product of one stage: 64 rows of A and n columns of B, 64 deep, as the loads of every variant lay them out.
//
// K-major tile: one row of 64 k (128 bytes) per row of A or column of B. MN-major tile: panels of 64 rows or columns;
// a panel has one row of 128 bytes per k. Both with the 128-byte swizzle, so both take 128 bytes per row of A or column
// of B, and 64 rows of A are 8 KiB either way. Where 64 does not divide N, panels are narrower (panel_width).
#pragma once

#include "device/wgmma.cuh"
#include "ops/gemm/shared/call.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kPanelBytes = 64 * kRowBytes;

/// Elements in a row of a tile of `extent` rows or columns: all of its k, or the columns of a panel.
constexpr int panel_width(Major major, int extent) {
  if (major == Major::k || extent % 64 == 0) return 64;
  return extent % 32 == 0 ? 32 : 16;
}
/// Bytes of such a row, and the swizzle.
template <Major major, int extent>
inline constexpr int kTileRowBytes = 2 * panel_width(major, extent);
template <Major major, int extent>
inline constexpr device::Swizzle kTileSwizzle = static_cast<device::Swizzle>(kTileRowBytes<major, extent>);

/// `depth`: of an MN-major tile that lies in memory as several of less depth, one behind the other.
template <Major major, int extent, int depth = kDepth>
struct TileOperand {
  static constexpr int kLine = kTileRowBytes<major, extent>;
  static constexpr int kInstructionDepth = 16;
  static constexpr int kStep = major == Major::k ? 2 * kInstructionDepth : kInstructionDepth * kLine;
  static constexpr int kSteps = depth / kInstructionDepth;
  static_assert(depth == kDepth || major == Major::mn);
  device::OperandDescriptor descriptor;

  /// Leading offset: from panel to panel of an MN-major tile. Stride: from one atom of 8 lines to the next.
  __device__ __forceinline__ explicit TileOperand(const void* tile)
      : descriptor(device::operand_descriptor<kTileSwizzle<major, extent>>(tile, major == Major::k ? 16 : depth * kLine,
                                                                           8 * kLine)) {}
  __device__ __forceinline__ device::OperandDescriptor at(int instruction) const {
    return descriptor.advanced(instruction / kSteps * (2 * extent * depth) + instruction % kSteps * kStep);
  }
};

/// accumulators = (accumulate ? accumulators : 0) + A B, issued as one group of wgmma.
template <class T, int n, Major a_major, Major b_major>
__device__ __forceinline__ void multiply_stage(float (&accumulators)[n / 2], const void* a, const void* b,
                                               bool accumulate) {
  const TileOperand<a_major, 64> left(a);
  const TileOperand<b_major, n> right(b);
  device::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kDepth / 16; ++i)
    device::Wgmma<T, n>::template multiply<a_major, b_major>(accumulators, left.at(i), right.at(i),
                                                             accumulate || i > 0);
  device::wgmma_commit();
}

}  // namespace tmaops::ops::gemm
