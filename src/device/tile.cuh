// A tile in shared memory as a tensor load writes it: its box, swizzle and bytes, checked when the kernel is compiled.
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"

namespace tmaops::device {

/// The value is the swizzle's width in bytes (PTX ISA "Swizzling Modes").
enum class Swizzle : int { none = 0, b32 = 32, b64 = 64, b128 = 128 };

/// Where the copy engine puts the byte that has this offset in the dense tile. It exchanges 16-byte chunks within
/// groups of 8, 4 or 2 lines of 128 B. The hardware applies it to the absolute address; an offset does as well in a
/// tile that starts in phase.
template <Swizzle swizzle>
__host__ __device__ constexpr std::uint32_t swizzled(std::uint32_t address) {
  constexpr std::uint32_t mask =
      static_cast<std::uint32_t>(swizzle) == 0 ? 0 : static_cast<std::uint32_t>(swizzle) / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

/// The box of a tensor map, innermost dimension first: Tile<__half, Swizzle::b128, 64, 128> is 128 rows of 64 halves.
/// `Tile::Storage` is the shared memory for one box.
template <class T, Swizzle swizzle_, int... box>
struct Tile {
  static constexpr int rank = sizeof...(box);
  static_assert(rank >= 1 && rank <= 5, "a box has 1 to 5 dimensions");
  static_assert(((box >= 1 && box <= 256) && ...), "every box dimension is 1 to 256 elements");
  static constexpr int extents[rank] = {box...};
  static constexpr int row_bytes = extents[0] * static_cast<int>(sizeof(T));
  static_assert(
      row_bytes % 16 == 0,
      "the innermost box dimension must be a multiple of 16 bytes: are the dimensions listed outermost first?");
  static_assert(swizzle_ == Swizzle::none || row_bytes == static_cast<int>(swizzle_),
                "the innermost box dimension must be as wide as the swizzle: 32, 64 or 128 bytes");
  static constexpr Swizzle swizzle = swizzle_;
  static constexpr int elements = (box * ...);
  static constexpr int bytes = elements * static_cast<int>(sizeof(T));
  static_assert(bytes <= kMaxSharedBytes, "the box is larger than a block's shared memory (227 KiB)");
  /// Multiple of the address at which the box starts in phase with its swizzle; 128 without one.
  static constexpr int alignment = swizzle_ == Swizzle::none ? 128 : 8 * static_cast<int>(swizzle_);
  static_assert(bytes % alignment == 0 || swizzle_ == Swizzle::none,
                "boxes that follow one another would start out of phase: use a multiple of 8 rows");

  struct alignas(alignment) Storage {
    unsigned char bytes[static_cast<std::size_t>(elements) * sizeof(T)];
  };
};

}  // namespace tmaops::device
