// How wgmma finds its operands in shared memory (PTX ISA "Matrix Descriptor Format" and "Shared Memory Matrix Layout").
//
// `mn` is the index that is not summed over: the row of A, the column of B. An operand is K-major when k is contiguous,
// MN-major when mn is. Canonical layouts for 16-bit elements, as a tensor load with the same swizzle writes them:
//   K-major:  rows of mn, each 16/32/64 elements of k wide (32B/64B/128B swizzle); 8 rows are one atom.
//   MN-major: rows of k, each 16/32/64 elements of mn wide; 8 rows are one atom.
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"
#include "device/tile.cuh"

namespace tmaops::device {

enum class Major : int { k = 0, mn = 1 };

/// A 64-bit descriptor: bits 0-13 address / 16, 16-29 leading byte offset / 16, 32-45 stride byte offset / 16, 62-63
/// swizzle. The tile starts in phase with its swizzle, so the base offset (bits 49-51) is 0.
struct OperandDescriptor {
  std::uint64_t bits;
  /// The same operand `bytes` further. The next 16 elements of k lie 32 bytes further in a K-major tile, and 16 rows
  /// further in an MN-major one.
  __device__ __forceinline__ OperandDescriptor advanced(int bytes) const {
    return {bits + (static_cast<std::uint64_t>(bytes) >> 4)};
  }
};

/// leading_bytes, stride_bytes by layout:
///   K-major, swizzled:   leading unused; stride: from one atom of 8 rows to the next (8 x width when dense).
///   K-major, none:       leading: to the next 8 elements of k; stride: to the next 8 of mn (8x8 blocks of 128 B).
///   MN-major, swizzled:  leading: to the next 16/32/64 elements of mn; stride: to the next 8 of k (8 x width when
///   dense). MN-major, none:      leading: to the next 8 of k; stride: to the next 8 elements of mn.
template <Swizzle swizzle>
__device__ __forceinline__ OperandDescriptor operand_descriptor(const void* tile, std::uint32_t leading_bytes,
                                                                std::uint32_t stride_bytes) {
  constexpr std::uint64_t mode = swizzle == Swizzle::b128  ? 1
                                 : swizzle == Swizzle::b64 ? 2
                                 : swizzle == Swizzle::b32 ? 3
                                                           : 0;
  const auto field = [](std::uint32_t bytes) { return static_cast<std::uint64_t>((bytes & 0x3FFFFu) >> 4); };
  return {field(shared_address(tile)) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | mode << 62};
}

}  // namespace tmaops::device
