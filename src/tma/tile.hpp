// Host model of a load through a tiled map: the bytes it puts into shared memory. `tmaops probe` compares it with a
// GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tma/swizzle.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

/// Shape of the tile in shared memory.
struct TileLayout {
  int rank = 0;
  std::array<std::int64_t, 5> loaded{1, 1, 1, 1, 1};  // elements along each dimension: ceil(box / element stride)
  std::int64_t element_bytes = 0;
  std::int64_t row_bytes = 0;  // loaded[0] elements
  std::int64_t row_pitch = 0;  // from row to row: row_bytes, or the whole span of the swizzle
  std::int64_t rows = 0;
  std::int64_t transaction_bytes = 0;  // what the barrier counts: rows * row_bytes
  std::int64_t footprint = 0;          // from the destination to the end of the last 128-byte line written
};

/// Throws Error bad_tile_load for coordinates or a destination against the rules.
void require_valid(const TensorMapSpec& spec, const TileLoad& load);

/// Throws Error bad_tensor_map for a map that is not valid, tile_not_modelled for im2col, interleave and packed types.
TileLayout tile_layout(const TensorMapSpec& spec);

/// One element of the tile.
struct TileElement {
  std::array<std::int64_t, 5> index{};    // in the tile
  std::array<std::int64_t, 5> element{};  // in the tensor
  bool inside = false;                    // of the tensor; otherwise it is fill
  std::int64_t global_offset = 0;         // bytes from the tensor's address, when inside
  std::uint32_t shared_address = 0;       // where its first byte lies
};

/// Element number `i` of the tile, dimension 0 fastest.
TileElement tile_element(const TensorMapSpec& spec, const TileLayout& layout, const TileLoad& load, std::int64_t i);

/// Number of elements in the tile.
inline std::int64_t tile_size(const TileLayout& layout) { return layout.rows * layout.loaded[0]; }

/// Shared memory after the load: layout.footprint bytes from the destination; bytes that the load does not write keep
/// the value they have in `shared`. `global` is the tensor's memory from its address on. Throws Error bad_tile_load for
/// coordinates or a destination against the rules, and shape_mismatch when `global` or `shared` is too small.
void load_tile(const TensorMapSpec& spec, const TileLoad& load, std::span<const std::byte> global,
               std::span<std::byte> shared);

/// The bytes that stand for an element outside of the tensor (8, as many as the largest type has). NaN fill is 0x7FF7
/// in every 16 bits, a NaN in every floating-point type (measured).
std::array<std::byte, 8> fill_bytes(Fill fill);

/// What a load makes of 32 bits: tf32 and tf32_ftz are rounded to 10 bits of mantissa, to nearest even, and every NaN
/// becomes 0x7FFFE000; all other types, f32_ftz too, keep their bits (measured).
std::uint32_t converted(ElementType type, std::uint32_t bits);

}  // namespace tmaops::tma
