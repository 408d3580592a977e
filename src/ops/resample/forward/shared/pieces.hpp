// Rows in pieces of 16 bytes of values, every channel with its own interpolation. The kind of a piece and the mode of a
// channel are data, so that one kernel serves every mixture.
#pragma once

#include <cstdint>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample::gpu {

/// What all channels of a piece are; the first five are the numbers of Interpolation.
enum class Kind : std::uint32_t { linear, previous, next, nearest, cubic, quaternions, mixed };
static_assert(static_cast<int>(Interpolation::cubic) == 4 && static_cast<int>(Interpolation::slerp) == 5);

/// A piece of a row. Modes have 4 bits per value from the lowest on: an Interpolation up to cubic, or 8 + c for
/// component c of a quaternion.
struct Piece {
  std::uint32_t modes = 0;
  Kind kind = Kind::linear;
};

/// Those of a row, in the parameters of a kernel: nothing to allocate.
inline constexpr int kMostPieces = 128;
struct Pieces {
  Piece at[kMostPieces];
};

/// The pieces of a problem's rows, which have at most kMostPieces.
Pieces pieces_of(const Problem& problem);

}  // namespace tmaops::ops::resample::gpu
