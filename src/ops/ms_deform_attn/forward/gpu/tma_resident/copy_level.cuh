// The copy of the second level, in which a head's pixels lie next to each other. Where heads lie next to each other
// instead, the two pixels of a row are a multiple of 128 bytes apart and in the same banks of the L1, so that they take
// two passes of its data pipe, and every line of the L1 holds bytes of other heads. The first level would take four
// times the copy for as many samples.
#pragma once

#include "ops/ms_deform_attn/forward/gpu/tma_resident/samples.cuh"

namespace tmaops::ops::ms_deform_attn::tma_resident {

constexpr unsigned kCopyThreads = 256;
constexpr unsigned kCopyWarpPixels = 8;  // of one head that a warp copies at once, 16 bytes per thread
constexpr unsigned kCopyBatches = 4;     // of these, under way together
constexpr unsigned kCopyBlockPixels = kCopyWarpPixels * kCopyBatches;

/// The level in `value`: bytes.
struct CopySource {
  const unsigned char* level = nullptr;
  std::uint64_t image = 0;  // strides
  std::uint64_t pixel = 0;
  std::uint64_t head = 0;
  unsigned heads = 0;
  unsigned pixels = 0;
  unsigned image_blocks = 0;
};

/// Copies kCopyBlockPixels of all heads of an image per block.
static __global__ void __launch_bounds__(kCopyThreads)
    copy_level(const __grid_constant__ CopySource from, const __grid_constant__ CopiedLevel to) {
  device::wait_for_previous_kernel();
  const auto lane = static_cast<unsigned>(device::lane_index());
  const unsigned n = blockIdx.x / from.image_blocks;
  const unsigned first = (blockIdx.x - n * from.image_blocks) * kCopyBlockPixels + lane / 4;
  const unsigned piece = lane % 4 * 16;
  for (unsigned m = threadIdx.x / device::kWarpThreads; m < from.heads; m += kCopyThreads / device::kWarpThreads) {
    const unsigned char* source = from.level + n * from.image + m * from.head + piece;
    unsigned char* copy = to.maps + (std::uint64_t{n} * from.heads + m) * to.map_bytes + piece;
    uint4 pieces[kCopyBatches];
#pragma unroll
    for (unsigned i = 0; i < kCopyBatches; ++i)
      if (const unsigned pixel = first + kCopyWarpPixels * i; pixel < from.pixels)
        pieces[i] = device::load_16_once(source + pixel * from.pixel);
#pragma unroll
    for (unsigned i = 0; i < kCopyBatches; ++i)
      if (const unsigned pixel = first + kCopyWarpPixels * i; pixel < from.pixels)
        device::store_16(copy + pixel * kCopiedPixelBytes, pieces[i]);
  }
  device::let_next_kernel_start();
}

inline CopySource copy_source(const Problem& problem, const Call& call) {
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements * 2); };
  const Level& level = problem.levels[kCopiedLevel];
  const auto pixels = static_cast<unsigned>((level.height - 1) * level.pitch + level.width);  // as in value, border and all
  return {.level = static_cast<const unsigned char*>(call.value.data) + bytes(call.levels[kCopiedLevel].value_at),
          .image = bytes(call.value.image),
          .pixel = bytes(call.value.row),
          .head = bytes(call.value.head),
          .heads = static_cast<unsigned>(problem.heads),
          .pixels = pixels,
          .image_blocks = (pixels + kCopyBlockPixels - 1) / kCopyBlockPixels};
}

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
