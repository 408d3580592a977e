// Sums of weights times pixels by tensor cores: of far levels, whose pixels are loaded to registers, and of near ones,
// in shared memory.
#pragma once

#include "device/matrix.cuh"
#include "device/mma.cuh"
#include "ops/ms_deform_attn/cuda/resident_samples.cuh"

namespace tmaops::ops::ms_deform_attn::resident {

/// Sums over samples of far levels. A product multiplies weights (rows: query, half of the channels; 8 rows further the
/// rest of the weights) by pixels (columns: query, piece of 16 bytes). What rows of one query make of columns of
/// another is of no use, but the tensor cores have time for it. There is a product for each channel of a piece; in the
/// end the threads lane / 8 = lane % 4 = query hold a half of its channels, its pieces in the order of NearSums.
struct FarSums {
  float of[8][4] = {};
};

/// What a thread does with samples of far levels: of query lane / 8, column (lane / 2) % 2, and 16 bytes of channels.
struct FarLane {
  std::uint32_t first_offset;   // bytes behind a pixel, of its first sample
  std::uint32_t second_offset;  // the second sample's halves of the channels are exchanged
  std::uint32_t weights;        // in the staging
  bool first;                   // the weights it reads are those of the first sample

  __device__ __forceinline__ FarLane(int lane, std::uint32_t pixel_bytes, std::uint32_t staging) {
    const int column = lane >> 1 & 1;
    const int half = lane & 1;
    const int row = lane >> 2 & 1;            // half of the channels of the product's row
    const int piece = row ^ (lane >> 3 & 1);  // of the product's column: as in NearSums
    first_offset =
        static_cast<std::uint32_t>(column) * pixel_bytes + static_cast<std::uint32_t>(32 * half + 16 * piece);
    second_offset = half == 0 ? first_offset + 32u : first_offset - 32u;
    first = half == row;
    weights =
        staging + static_cast<std::uint32_t>((lane >> 3) * kQueryStagingBytes + (half == row ? 0 : 8) + column * 4);
  }
};

struct FarPixels {
  uint4 upper[2];
  uint4 lower[2];
};

__device__ __forceinline__ void load_far(const unsigned char* map, const DeviceLevel& level, std::uint32_t pixel_bytes,
                                         std::uint32_t start, const FarLane& mine, std::uint32_t pixels,
                                         FarPixels& to) {
  const std::uint32_t down = static_cast<std::uint32_t>(level.width) * pixel_bytes;
  const std::uint32_t first = (pixels & 0xffffu) * pixel_bytes + (start + mine.first_offset);
  const std::uint32_t second = (pixels >> 16) * pixel_bytes + (start + mine.second_offset);
  to.upper[0] = device::load_16(map + first);
  to.lower[0] = device::load_16(map + (first + down));
  to.upper[1] = device::load_16(map + second);
  to.lower[1] = device::load_16(map + (second + down));
}

template <class Value>
__device__ __forceinline__ void add_far(FarSums& sums, const FarLane& mine, int slot, const FarPixels& from) {
  const std::uint32_t rounded = device::load_shared(mine.weights + 16 * slot);
  const std::uint32_t rest = device::load_shared(mine.weights + 16 * slot + kPartStagingBytes);
  const std::uint32_t weights[4] = {mine.first ? rounded : 0u, mine.first ? rest : 0u, mine.first ? 0u : rounded,
                                    mine.first ? 0u : rest};
  const auto words = [](const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; };
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const unsigned which = c % 2 == 0 ? 0x5410u : 0x7632u;
    const std::uint32_t pixels[2] = {__byte_perm(words(from.upper[0], c / 2), words(from.lower[0], c / 2), which),
                                     __byte_perm(words(from.upper[1], c / 2), words(from.lower[1], c / 2), which)};
    device::multiply_add<Value>(sums.of[c], weights, pixels);
  }
}

/// Sums over samples of near levels, by half of the channels. A product multiplies pixels (rows: channels; 8 rows are a
/// piece of 16 bytes) by weights (columns: query, and the rest of its weights). Rows 0 to 7 are the half's first piece
/// for queries 0 and 2 and its second piece for 1 and 3, so that the reads of two queries meet no bank twice.
struct NearSums {
  float of[2][4] = {};
};

/// Thread t gives the address of a row of matrix t / 8: piece (t / 8) % 2 of the half, of queries 0, 1 or 2, 3; rows go
/// through the two queries, then the columns, then the rows of the four pixels.
struct NearLane {
  int source;                         // thread that worked out slot 0 of the query whose pixels it reads
  std::uint32_t corner[kNearLevels];  // shared address of what it reads of pixel 0
  std::uint32_t weights;              // in the staging
  unsigned pick[2];                   // a sample's weights of its column, for queries 0, 1 and for 2, 3

  __device__ __forceinline__ NearLane(int lane, const Near& near, std::uint32_t planes, std::uint32_t staging) {
    const int odd = lane & 1;
    const int right = lane >> 1 & 1;
    const int below = lane >> 2 & 1;
    const int piece = (lane >> 3 & 1) ^ odd;
    source = (2 * (lane >> 4) + odd) * kSlots;
#pragma unroll
    for (int l = 0; l < kNearLevels; ++l)
      corner[l] = planes + static_cast<std::uint32_t>((near.first[l] + below * near.pitch[l] + right) * kPixelBytes +
                                                      piece * 16);
    const int query = lane >> 3;
    weights = staging + static_cast<std::uint32_t>((lane >> 2 & 1) * kPartStagingBytes + query * kQueryStagingBytes +
                                                   (lane & 3) * 4);
    const unsigned own = query % 2 == 0 ? 0x4410u : 0x1044u;
    pick[0] = query < 2 ? own : 0x4444u;
    pick[1] = query < 2 ? 0x4444u : own;
  }
};

template <class Value>
__device__ __forceinline__ void add_near(NearSums& sums, const NearLane& mine, std::uint32_t plane_bytes, int slot,
                                         std::uint32_t pixels_of_all) {
  const std::uint32_t pixels = __shfl_sync(kAll, pixels_of_all, mine.source + slot);
  const std::uint32_t corner = mine.corner[slot * kLevels / kSlots - kFarLevels];
  const std::uint32_t at[2] = {(pixels & 0xffffu) * kPixelBytes + corner, (pixels >> 16) * kPixelBytes + corner};
  const std::uint32_t word = device::load_shared(mine.weights + 16 * slot);
#pragma unroll
  for (int sample = 0; sample < 2; ++sample) {
    const std::uint32_t own = sample == 0 ? word : word >> 16;
    const std::uint32_t weights[2] = {__byte_perm(own, 0, mine.pick[0]), __byte_perm(own, 0, mine.pick[1])};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t corners[4];
      device::load_matrices_transposed(corners, at[sample] + half * plane_bytes);
      device::multiply_add<Value>(sums.of[half], corners, weights);
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn::resident
