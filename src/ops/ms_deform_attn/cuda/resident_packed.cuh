// A copy of the second level in which a head's pixels lie next to each other. Where heads lie next to each other
// instead, the two pixels of a row are a multiple of 128 bytes apart and in the same banks of the L1, so that they take
// two passes of its data pipe, and every line of the L1 holds bytes of other heads. The first level would take four
// times the copy for as many samples.
#pragma once

#include "ops/ms_deform_attn/cuda/resident_samples.cuh"

namespace tmaops::ops::ms_deform_attn::resident {

constexpr int kPackedLevel = 1;
constexpr std::uint32_t kPackedPixelBytes = 2 * kChannels;

/// Maps of the level, one per image and head.
struct Packed {
  unsigned char* maps = nullptr;  // null: there is no copy
  std::uint64_t map_bytes = 0;
};

constexpr unsigned kPackThreads = 256;
constexpr unsigned kPackWarpPixels = 8;  // of one head that a warp copies at once, 16 bytes per thread
constexpr unsigned kPackBatches = 4;     // of these, under way together
constexpr unsigned kPackBlockPixels = kPackWarpPixels * kPackBatches;

/// The level in `value`: bytes.
struct PackSource {
  const unsigned char* level = nullptr;
  std::uint64_t image = 0;  // strides
  std::uint64_t pixel = 0;
  std::uint64_t head = 0;
  unsigned heads = 0;
  unsigned pixels = 0;
  unsigned image_blocks = 0;
};

/// Copies kPackBlockPixels of all heads of an image per block.
static __global__ void __launch_bounds__(kPackThreads)
    pack_level(const __grid_constant__ PackSource from, const __grid_constant__ Packed to) {
  device::wait_for_previous_kernel();
  const auto lane = static_cast<unsigned>(device::lane_index());
  const unsigned n = blockIdx.x / from.image_blocks;
  const unsigned first = (blockIdx.x - n * from.image_blocks) * kPackBlockPixels + lane / 4;
  const unsigned piece = lane % 4 * 16;
  for (unsigned m = threadIdx.x / device::kWarpThreads; m < from.heads; m += kPackThreads / device::kWarpThreads) {
    const unsigned char* source = from.level + n * from.image + m * from.head + piece;
    unsigned char* copy = to.maps + (std::uint64_t{n} * from.heads + m) * to.map_bytes + piece;
    uint4 pieces[kPackBatches];
#pragma unroll
    for (unsigned i = 0; i < kPackBatches; ++i)
      if (const unsigned pixel = first + kPackWarpPixels * i; pixel < from.pixels)
        pieces[i] = device::load_16_once(source + pixel * from.pixel);
#pragma unroll
    for (unsigned i = 0; i < kPackBatches; ++i)
      if (const unsigned pixel = first + kPackWarpPixels * i; pixel < from.pixels)
        device::store_16(copy + pixel * kPackedPixelBytes, pieces[i]);
  }
  device::let_next_kernel_start();
}

/// Queries per pixel of the level from which the copy pays: seed8 has 4.2, where it takes 1.4 % of the time and saves 4
/// to 8 % (docs/findings/ms_deform_attn_resident.md, S13).
constexpr std::int64_t kQueriesThatPack = 2;

/// With four points per level the copy takes as long as what it saves.
inline bool packing_pays(const Problem& problem, const Call& call) {
  const Level& level = problem.levels[kPackedLevel];
  return level.points == 8 && call.value.row * 2 % 128 == 0 &&
         problem.queries >= kQueriesThatPack * level.height * level.width;
}

inline PackSource pack_source(const Problem& problem, const Call& call) {
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements * 2); };
  const Level& level = problem.levels[kPackedLevel];
  const auto pixels = static_cast<unsigned>(level.height * level.width);
  return {.level = static_cast<const unsigned char*>(call.value.data) + bytes(call.levels[kPackedLevel].value_at),
          .image = bytes(call.value.image),
          .pixel = bytes(call.value.row),
          .head = bytes(call.value.head),
          .heads = static_cast<unsigned>(problem.heads),
          .pixels = pixels,
          .image_blocks = (pixels + kPackBlockPixels - 1) / kPackBlockPixels};
}

}  // namespace tmaops::ops::ms_deform_attn::resident
