// The shared-memory swizzle: a permutation of chunks that depends on the absolute address.
#pragma once

#include <cstdint>

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

/// Where the byte goes that a tile without swizzle would have at `address` (bytes in the shared window).
///
/// Within lines of 128 bytes, the number of the chunk is XORed with low bits of the number of the line:
///   32B  16-byte chunks, 1 bit;  64B  2 bits;  128B  3 bits  (CUDA Programming Guide; CuTe Swizzle<1|2|3, 4, 3>)
///   128B_ATOM_32B  32-byte chunks, 2 bits (CuTe Swizzle<2, 5, 2>)
///   128B_ATOM_32B_FLIP_8B  the same, and the 8-byte halves of each 16 bytes change places in odd lines
///   128B_ATOM_64B  64-byte chunks, 1 bit
/// The last three exist from compute capability 10.0; the last two are read from their names in cuda.h and were not
/// compared with hardware. Every one is its own inverse.
constexpr std::uint32_t swizzled(Swizzle swizzle, std::uint32_t address) {
  const std::uint32_t line = address >> 7;
  switch (swizzle) {
    case Swizzle::none:
      return address;
    case Swizzle::b32:
      return address ^ ((line & 1U) << 4);
    case Swizzle::b64:
      return address ^ ((line & 3U) << 4);
    case Swizzle::b128:
      return address ^ ((line & 7U) << 4);
    case Swizzle::b128_atom32:
      return address ^ ((line & 3U) << 5);
    case Swizzle::b128_atom32_flip8:
      return address ^ ((line & 3U) << 5) ^ ((line & 1U) << 3);
    case Swizzle::b128_atom64:
      return address ^ ((line & 1U) << 6);
  }
  return address;
}

/// Bytes after which the pattern repeats: a destination at a multiple of it needs no phase.
constexpr std::uint32_t swizzle_period(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return 128;
    case Swizzle::b32:
    case Swizzle::b128_atom64:
      return 256;
    case Swizzle::b64:
    case Swizzle::b128_atom32:
    case Swizzle::b128_atom32_flip8:
      return 512;
    case Swizzle::b128:
      return 1024;
  }
  return 128;
}

}  // namespace tmaops::tma
