// What simd_packed knows about a call before it starts, and about the image it works on.
#pragma once

#include <hwy/base.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "ops/ms_deform_attn/cpu/aligned_buffer.hpp"
#include "ops/ms_deform_attn/cpu/head_maps.hpp"
#include "ops/ms_deform_attn/cpu/query_order.hpp"
#include "ops/ms_deform_attn/cpu/simd_job.hpp"

namespace tmaops::ops::ms_deform_attn::simd_packed {

/// Channels come in blocks of this many: whole vectors on every target.
inline constexpr std::int64_t kChannelBlock = 16;

/// Zen 4 (the only one of AMD's family 19h with AVX-512) works on 512 bits in two halves. Conversions from f16 to half
/// a register take half as long there, and the sums 2.7 cycles per corner instead of 4.6; f32 and bf16 gain nothing.
inline bool halves_512_bit_vectors() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  return __builtin_cpu_is("amdfam19h");
#else
  return false;
#endif
}

/// f16 channels are paired in blocks of this many, see simd_paired.hpp.
inline constexpr std::int64_t kPairedBlock = 2 * kChannelBlock;
/// What pairs are to be multiplied by, to be the values they stand for.
inline constexpr float kPairScale = 0x1p112F;

/// How many levels, the last ones, hold f32 in maps of f16 values whose other levels hold pairs. 0 for maps of the
/// value's own type, which they are where conversions cost little.
inline std::size_t widened_levels(const Problem& problem) {
  // Twice the bytes for an eighth of the pixels at most: what a tile samples stays in the L2 cache. Half of the points
  // at most: pairs want one of f32 each, more of those gain nothing.
  constexpr std::int64_t kLargestShare = 8;
  if (problem.value_dtype != DType::f16 || problem.channels % kPairedBlock != 0 || !halves_512_bit_vectors()) return 0;
  std::int64_t area = 0;
  std::int64_t points = 0;
  std::size_t count = 0;
  for (; count + 1 < problem.levels.size(); ++count) {
    const Level& level = problem.levels[problem.levels.size() - 1 - count];
    area += level.height * level.width;
    points += level.points;
    if (area * kLargestShare > problem.length || points * 2 > problem.points) break;
  }
  return HeadMapLayout(problem, count).fits(problem.channels) ? count : 0;
}

/// What every thread reads; one entry per point and padding, as vectors of points load it.
struct PackedJob {
  PackedJob(const Problem& problem, const Arguments& arguments)
      : direct(problem, arguments),
        widened(widened_levels(problem)),
        layout(direct.problem, widened),
        maps(static_cast<std::size_t>(problem.heads * layout.pixels * problem.channels) *
             size_of(problem.value_dtype)) {
    for (std::size_t l = 0; l < problem.levels.size(); ++l)
      for (std::int64_t p = 0; p < problem.levels[l].points; ++p) add(l);
    for (std::size_t i = 0; i < kMaxLanes; ++i) add(problem.levels.size() - 1);
  }

  /// Points of the levels that are not widened.
  std::size_t paired_points() const {
    std::int64_t points = 0;
    for (std::size_t l = 0; l + widened < direct.problem.levels.size(); ++l) points += direct.problem.levels[l].points;
    return static_cast<std::size_t>(points);
  }

  ForwardJob direct;
  std::size_t widened;  // levels; 0 for maps of the value's own type
  HeadMapLayout layout;
  std::vector<float> first;            // pixel (0, 0) of the point's level in a map
  std::vector<float> pitch;            // pixels from row to row
  std::vector<float> step;             // pixels from pixel to pixel
  std::vector<float> scale;            // of the weights
  std::vector<std::int32_t> row_step;  // elements from row to row
  bool halved_vectors = halves_512_bit_vectors();
  /// The copies of one image, kept from run to run: fresh memory costs 2 ms of page faults for 23 MB.
  mutable AlignedBuffer<unsigned char> maps;
  mutable std::mutex maps_in_use{};

 private:
  void add(std::size_t level) {
    first.push_back(static_cast<float>(layout.levels[level].first));
    pitch.push_back(static_cast<float>(layout.levels[level].pitch));
    step.push_back(static_cast<float>(layout.levels[level].step));
    scale.push_back(layout.levels[level].step == 1 ? kPairScale : 1.0F);
    row_step.push_back(static_cast<std::int32_t>(layout.levels[level].pitch * direct.problem.channels));
  }
};

/// One image's share of a call.
struct ImageJob {
  const PackedJob& job;
  const QueryOrder& order;
  std::int64_t image;
  const void* maps;  // [head][pixel][channel]
};

}  // namespace tmaops::ops::ms_deform_attn::simd_packed
