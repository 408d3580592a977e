// Where shared_padded keeps the corners of a stage in shared memory, and which thread writes and reads what: for the
// kernel and for the test that counts bank conflicts on the host.
#pragma once

namespace tmaops::ops::ms_deform_attn::shared_padded {

/// A warp's stage: four samples of each of its items, 2^lane_bits threads (and 16-byte pieces of a pixel) per item.
struct PaddedRows {
  static constexpr int kSamples = 4;
  static constexpr int kMostBytes = kSamples * 4 * 32 * 16 + 32 * 4;  // of a warp, for any lane_bits

  int lane_bits = 2;

  constexpr int lanes() const { return 1 << lane_bits; }
  /// An item's corners, and the padding: as many words as it has threads, so that its neighbours' threads find their
  /// words in the banks next to them.
  constexpr int item_bytes() const { return kSamples * 4 * 16 * lanes() + 4 * lanes(); }

  /// Writing, 16 bytes per thread: in round `half` the warp writes the left and right corner of a row for half of its
  /// items, so that eight neighbouring threads write 128 bytes in a row.
  constexpr int written_item(int lane, int half) const { return (lane >> (lane_bits + 1)) + half * (16 >> lane_bits); }
  constexpr int written_side(int lane) const { return lane >> lane_bits & 1; }
  constexpr int written(int lane, int half, int sample, int row) const {
    return written_item(lane, half) * item_bytes() + ((sample * 2 + row) * 2 + written_side(lane)) * 16 * lanes() +
           (lane & (lanes() - 1)) * 16;
  }
  /// Reading, 4 bytes per thread and `word`: a thread's channels are lanes() words apart.
  constexpr int read(int lane, int sample, int corner, int word) const {
    return (lane >> lane_bits) * item_bytes() + (sample * 4 + corner) * 16 * lanes() +
           ((lane & (lanes() - 1)) + word * lanes()) * 4;
  }
};

}  // namespace tmaops::ops::ms_deform_attn::shared_padded
