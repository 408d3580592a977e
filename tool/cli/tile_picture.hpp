// A drawing of a tile in shared memory, line by line.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tma/tile.hpp"

namespace tmaops::cli {

/// 16 bytes of a tile row. Every swizzle of Hopper moves them as a whole.
struct Chunk {
  std::int64_t row = 0;
  std::array<std::int64_t, 5> index{};  // of its first element in the tile
  std::int64_t elements = 0;
  std::int64_t inside = 0;  // of them lie in the tensor; the rest is fill
};

/// 128 bytes of shared memory, one word of each of the 32 banks.
struct Line {
  std::uint32_t address = 0;
  std::array<std::optional<Chunk>, 8> chunks{};  // nothing: not written by the load
};

struct Picture {
  tma::TileLayout layout;
  std::vector<Line> lines;
  std::int64_t inside = 0;  // elements of the whole tile that lie in the tensor
  std::int64_t fill = 0;
};

/// Throws as tile_layout() does, and Error bad_tile_load when the load breaks a rule.
Picture draw(const tma::TensorMapSpec& spec, const tma::TileLoad& load);

/// "8,1,0": the index of a chunk's first element in the tile, innermost first; with `*` when all of it is fill, `+`
/// when some is.
std::string label(const Picture& picture, const Chunk& chunk);

/// A table of the lines, eight cells of four banks each; `color` gives every tile row a background of its own.
std::string picture_text(const Picture& picture, bool color, std::size_t most_lines = 64);
/// The same as a complete SVG file.
std::string picture_svg(const Picture& picture, const std::string& title);

}  // namespace tmaops::cli
