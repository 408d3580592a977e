// Sums of weights times pixels by tensor cores: of far levels, whose pixels are loaded to registers, and of near ones,
// in shared memory. Which thread holds what.
#pragma once

#include "device/matrix.cuh"
#include "device/mma.cuh"
#include "ops/ms_deform_attn/forward/gpu/tma_resident/samples.cuh"

namespace tmaops::ops::ms_deform_attn::tma_resident {

// A pixel has 32 channels: two halves of two pieces of 8 channels (16 bytes) each. A product's operands and result lie
// in a warp's registers as PTX ISA "mma.m16n8k16" says, which gives the bits of a lane's number these meanings:
//
//        far levels                                      near levels
//   bit  pixels         weights        sums              pixel addresses   weights          sums
//   0    half           half           query, bit 1 (*)  query, bit 0      column           query, bit 0
//   1    column         column         half              column            row              query, bit 1
//   2    piece (**)     query, bit 0   piece (**)        row               rounded or rest  channel, bit 0
//   3    query, bit 0   query, bit 1   query, bit 0      piece (**)        query, bit 0     channel, bit 1
//   4    query, bit 1   half           query, bit 1      query, bit 1      query, bit 1     channel, bit 2
//
//   (*)  of the weights: only where it is bit 4 do the pixels and the weights of a sum belong to one query.
//   (**) exchanged for odd queries, so that what two queries read lies in different banks.
//
// What works samples out counts otherwise: lane / 8 is the query, lane % 8 the slot.

/// Sums over samples of far levels. A product multiplies pixels (rows: query, piece; 8 rows further the next channel)
/// by weights (columns: half of the channels, query). What rows of one query make of columns of another is of no use,
/// but the tensor cores have time for it. There is a product for each two channels of a piece, and one more for the
/// rest of the weights, with the same sums: half as many registers as if the rest had rows of its own.
struct FarSums {
  float of[4][4] = {};

  /// Whether the thread holds sums of use: eight channels, a piece.
  static __device__ __forceinline__ bool held_by(int lane) { return (lane & 1) == lane >> 4; }
  static __device__ __forceinline__ int query(int lane) { return lane >> 3; }
  static __device__ __forceinline__ int half(int lane) { return lane >> 1 & 1; }
  static __device__ __forceinline__ int piece(int lane) { return lane >> 2 & 1; }
  __device__ __forceinline__ float channel(int lane, int c) const {
    const float(&two)[4] = of[c / 2];
    return (lane >> 3 & 1) != 0 ? two[c % 2 * 2 + 1] : two[c % 2 * 2];
  }
};

/// What a thread reads of far levels.
struct FarLane {
  /// Pixel 0 of a level, where the thread's piece begins.
  struct Level {
    const unsigned char* first;   // for its first sample
    const unsigned char* second;  // the second sample's halves of the channels are exchanged
  };
  Level start;            // of the first level
  std::uint32_t weights;  // in the staging
  bool first;             // the weights it reads are those of the first sample

  static __device__ __forceinline__ int half(int lane) { return lane & 1; }
  static __device__ __forceinline__ int column(int lane) { return lane >> 1 & 1; }
  static __device__ __forceinline__ int piece(int lane) { return (lane >> 2 & 1) ^ (lane >> 3 & 1); }

  __device__ __forceinline__ FarLane(int lane, std::uint32_t staging) {
    const int query = lane >> 2 & 3;
    first = half(lane) == lane >> 4;
    weights = staging + static_cast<std::uint32_t>(query * kQueryStagingBytes + (first ? 0 : 8) + column(lane) * 4);
  }
  __device__ __forceinline__ Level level(std::uint64_t step) const {
    Level result{start.first + step, start.second + step};
    device::keep(result.first);  // else it is added to each address
    device::keep(result.second);
    return result;
  }
  /// `map`: the first level of an image and head.
  __device__ __forceinline__ void point_to(const void* map, int lane, std::uint32_t pixel_bytes) {
    const auto* pixels = static_cast<const unsigned char*>(map) + (column(lane) * pixel_bytes + 16 * piece(lane));
    start = {pixels + 32 * half(lane), pixels + 32 * (half(lane) ^ 1)};
    device::keep(start.first);
    device::keep(start.second);
  }
};

struct FarPixels {
  uint4 upper[2];
  uint4 lower[2];
};

__device__ __forceinline__ void load_far(const FarLane::Level& level, std::uint32_t pixel_bytes, std::uint32_t down,
                                         std::uint32_t pixels, FarPixels& to) {
  const auto* first = level.first + std::uint64_t{pixels & 0xffffu} * pixel_bytes;
  const auto* second = level.second + std::uint64_t{pixels >> 16} * pixel_bytes;
  to.upper[0] = device::load_16(first);
  to.lower[0] = device::load_16(first + down);
  to.upper[1] = device::load_16(second);
  to.lower[1] = device::load_16(second + down);
}

template <class Value>
__device__ __forceinline__ void add_far(FarSums& sums, const FarLane& mine, int slot, const FarPixels& from) {
  const std::uint32_t rounded = device::load_shared(mine.weights + 16 * slot);
  const std::uint32_t rest = device::load_shared(mine.weights + 16 * slot + kPartStagingBytes);
  const std::uint32_t weights[2] = {mine.first ? rounded : 0u, mine.first ? 0u : rounded};
  const std::uint32_t rests[2] = {mine.first ? rest : 0u, mine.first ? 0u : rest};
  const auto words = [](const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; };
  std::uint32_t pixels[4][4];
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
#pragma unroll
    for (int i = 0; i < 4; ++i)  // channel, then sample
      pixels[pair][i] =
          __byte_perm(words(from.upper[i / 2], pair), words(from.lower[i / 2], pair), i % 2 == 0 ? 0x5410u : 0x7632u);
    device::multiply_add<Value>(sums.of[pair], pixels[pair], weights);
  }
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) device::multiply_add<Value>(sums.of[pair], pixels[pair], rests);
}

/// Sums over samples of near levels, by half of the channels. A product multiplies pixels (rows: channels; 8 rows are a
/// piece of 16 bytes) by weights (columns: query, and the rest of its weights). Rows 0 to 7 are the half's first piece
/// for queries 0 and 2 and its second piece for 1 and 3, so that the reads of two queries meet no bank twice.
struct NearSums {
  float of[2][4] = {};

  static __device__ __forceinline__ int query(int lane) { return lane & 3; }
};

/// What a thread reads of near levels. It gives the address of a row of the matrix that bits 3 and 4 number.
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
  /// Makes the compiler hold on to it.
  __device__ __forceinline__ void keep() {
    const auto keep_word = [](std::uint32_t& word) {
      int number = static_cast<int>(word);
      device::keep(number);
      word = static_cast<std::uint32_t>(number);
    };
    device::keep(source);
    for (std::uint32_t& address : corner) keep_word(address);
    keep_word(weights);
    for (unsigned& selector : pick) keep_word(selector);
  }
};

/// `level`: of the near ones.
template <class Value>
__device__ __forceinline__ void add_near(NearSums& sums, const NearLane& mine, std::uint32_t plane_bytes, int slot,
                                         int level, std::uint32_t pixels_of_all) {
  const std::uint32_t pixels = __shfl_sync(kAll, pixels_of_all, mine.source + slot);
  const std::uint32_t corner = mine.corner[level];
  const std::uint32_t at[2] = {(pixels & 0xffffu) + corner, (pixels >> 16) + corner};
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

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
