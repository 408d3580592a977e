// The weighted sum over the corners of all points of one query and head, a block of channels at a time. Compiled once
// per SIMD target: the guard is a toggle.
//
// Records (of either variant) have a count of points, kCorners of each, in runs of kRun points (0: one run of all):
// corners(value, first, k) says of point k of the run that starts at point `first` where the channels of a corner
// start, pixel(c), and its weight(c).
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_SUMS
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_SUMS
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_SUMS
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/ms_deform_attn/forward/shared/simd_elements.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Keeps the compiler from folding the address into every load: with an index register a multiply-add from memory takes
/// two slots of the processor's front end, with a plain base register one.
template <class T>
HWY_INLINE const T* PlainBase(const T* address) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __asm__("" : "+r"(address));
#endif
  return address;
}

/// Keeps this instruction where the source has it among others that are kept. Zen 4 deals vector operations out to two
/// halves of its pipes in turn, as they come: multiply-adds that alternate with others all meet in one half. A
/// broadcast from memory counts, a load does not.
template <class V>
HWY_INLINE V InOrder(V vector) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __asm__ volatile("" : "+v"(vector.raw));
#endif
  return vector;
}

/// output[c] = sum over records and corners of weight * value[offset + c] for kVectors vectors of channels.
template <std::size_t kVectors, class D, class Records, class Stored, class Out>
void SumBlock(D d, const Records& records, const Stored* HWY_RESTRICT value, Out* HWY_RESTRICT output, bool streamed) {
  constexpr std::size_t kCorners = Records::kCorners;
  // Zen 4's order; on Zen 3 the compiler's takes less.
  constexpr bool kOrdered = std::is_same_v<Stored, bfloat16> && hn::MaxLanes(D()) == 16;
  // Two multiply-adds per cycle with a latency of four want eight chains.
  constexpr std::size_t kChains = kVectors == 1 ? kCorners : kVectors == 2 ? kCorners : (kCorners + 1) / 2;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sum[kChains][kVectors];
  for (std::size_t chain = 0; chain < kChains; ++chain)
    for (std::size_t v = 0; v < kVectors; ++v) sum[chain][v] = hn::Zero(d);
  std::size_t first = 0;
  do {
    const std::size_t run = Records::kRun == 0 ? records.count : HWY_MIN(Records::kRun, records.count - first);
    for (std::size_t k = 0; k < run; ++k) {
      const auto corners = records.corners(value, first, k);
      HWY_UNROLL(4)
      for (std::size_t corner = 0; corner < kCorners; ++corner) {
        const Stored* from = corners.pixel(corner);
        auto weight = hn::Set(d, corners.weight(corner));
        if constexpr (kOrdered) weight = InOrder(weight);
        auto& chain = sum[corner % kChains];
        if constexpr (kVectors == 1) {
          chain[0] = hn::MulAdd(weight, LoadF32(d, from), chain[0]);
        } else {
          HWY_UNROLL(2)
          for (std::size_t v = 0; v < kVectors; v += 2) {
            hn::Vec<D> part[2];
            LoadPair(d, from + v * lanes, part[0], part[1]);
            if constexpr (kOrdered) {
              part[0] = InOrder(part[0]);
              part[1] = InOrder(part[1]);
              chain[v] = InOrder(hn::MulAdd(weight, part[0], chain[v]));
              chain[v + 1] = InOrder(hn::MulAdd(weight, part[1], chain[v + 1]));
            } else {
              chain[v] = hn::MulAdd(weight, part[0], chain[v]);
              chain[v + 1] = hn::MulAdd(weight, part[1], chain[v + 1]);
            }
          }
        }
      }
    }
    first += run;
  } while (Records::kRun != 0 && first < records.count);
  for (std::size_t v = 0; v < kVectors; ++v)
    for (std::size_t chain = 1; chain < kChains; ++chain) sum[0][v] = hn::Add(sum[0][v], sum[chain][v]);
  if constexpr (kVectors == 1) {
    StoreF32(d, sum[0][0], output, streamed);
  } else {
    for (std::size_t v = 0; v < kVectors; v += 2)
      StoreSums<Stored>(d, sum[0][v], sum[0][v + 1], output + v * lanes, streamed);
  }
}

/// All channels, in blocks of up to kVectors vectors, past the caches if `streamed`; the last vector overlaps the one
/// before instead of running past the end.
template <std::size_t kVectors, class D, class Records, class Stored, class Out>
void SumChannels(D d, std::size_t channels, const Records& records, const Stored* HWY_RESTRICT value,
                 Out* HWY_RESTRICT output, bool streamed) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  if constexpr (kVectors == 4) {
    for (; channels - c >= 4 * lanes; c += 4 * lanes) SumBlock<4>(d, records, value + c, output + c, streamed);
    if (channels - c >= 2 * lanes) {
      SumBlock<2>(d, records, value + c, output + c, streamed);
      c += 2 * lanes;
    }
  }
  for (; c < channels; c += lanes) {
    c = HWY_MIN(c, channels - lanes);
    SumBlock<1>(d, records, value + c, output + c, streamed);
  }
}

/// The widest vectors that the channels fill; of a narrower kind these are at most three.
template <class Records, class Stored, class Out>
void SumAllChannels(std::size_t channels, const Records& records, const Stored* HWY_RESTRICT value,
                    Out* HWY_RESTRICT output) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 4> four;
  if (channels >= hn::Lanes(full))
    SumChannels<4>(full, channels, records, value, output, false);
  else if (channels >= hn::Lanes(eight))
    SumChannels<1>(eight, channels, records, value, output, false);
  else if (channels >= hn::Lanes(four))
    SumChannels<1>(four, channels, records, value, output, false);
  else
    SumChannels<1>(hn::CappedTag<float, 1>(), channels, records, value, output, false);
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
