// Where the published kernels with shared memory keep the tiles of a level, and which thread writes and reads what: for
// the kernels and for the test that counts bank conflicts on the host.
#pragma once

#include "study/ms_deform_attn/shared/half_problem.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// What follows the 32 channels of a pixel in shared memory.
enum class Padding { none, two_channels, four_channels };

/// A warp's stage: the 2 x 2 pixels of the eight samples that each of its eight queries takes in a level. Offsets are
/// in words of two channels.
template <Padding padding>
struct StagedRows {
  static constexpr int kQueries = 8;
  static constexpr int kCorners = 4;
  static constexpr int kPitch = kHalfChannels / 2 + (padding == Padding::none           ? 0
                                                     : padding == Padding::two_channels ? 1
                                                                                        : 2);
  static constexpr int kWords = kHalfPoints * kCorners * kQueries * kPitch;

  static constexpr int at(int point, int corner, int query) {
    return ((point * kCorners + corner) * kQueries + query) * kPitch;
  }
  /// Writing: the warp brings one tile at a time, 8 bytes per thread.
  static constexpr int written_corner(int lane) { return lane / 8; }
  static constexpr int written_word(int lane) { return lane % 8 * 2; }
  /// Reading: four threads per query, each the four words of its eight channels.
  static constexpr int read(int lane, int point, int corner, int word) {
    return at(point, corner, lane / 4) + lane % 4 * 4 + word;
  }
};

}  // namespace tmaops::ops::ms_deform_attn::gpu
