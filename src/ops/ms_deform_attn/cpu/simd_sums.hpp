// The weighted sum over the corners of all points of one query and head, a block of channels at a time. Compiled once
// per SIMD target: the guard is a toggle.
//
// Records (of either variant) say for point k, corner c: Offset(c, k), elements from `value` to the first channel, and
// Weight(c, k); count of points; kCorners of each.
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

#include "ops/ms_deform_attn/cpu/simd_elements.hpp"

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
template <std::size_t kVectors, class D, class Records, class Stored>
void SumBlock(D d, const Records& records, const Stored* HWY_RESTRICT value, Stored* HWY_RESTRICT output) {
  constexpr std::size_t kCorners = Records::kCorners;
  constexpr bool kUnpacks = std::is_same_v<Stored, bfloat16>;
  // Two multiply-adds per cycle with a latency of four want eight chains.
  constexpr std::size_t kChains = kVectors == 1 ? kCorners : kVectors == 2 ? kCorners : (kCorners + 1) / 2;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sum[kChains][kVectors];
  for (std::size_t chain = 0; chain < kChains; ++chain)
    for (std::size_t v = 0; v < kVectors; ++v) sum[chain][v] = hn::Zero(d);
  for (std::size_t k = 0; k < records.count; ++k) {
    HWY_UNROLL(4)
    for (std::size_t corner = 0; corner < kCorners; ++corner) {
      const Stored* from = PlainBase(value + records.Offset(corner, k));
      auto weight = hn::Set(d, records.Weight(corner, k));
      if constexpr (kUnpacks) weight = InOrder(weight);
      auto& chain = sum[corner % kChains];
      if constexpr (kVectors == 1) {
        chain[0] = hn::MulAdd(weight, LoadF32(d, from), chain[0]);
      } else {
        HWY_UNROLL(2)
        for (std::size_t v = 0; v < kVectors; v += 2) {
          hn::Vec<D> first;
          hn::Vec<D> second;
          LoadPair(d, from + v * lanes, first, second);
          if constexpr (kUnpacks) {
            first = InOrder(first);
            second = InOrder(second);
            chain[v] = InOrder(hn::MulAdd(weight, first, chain[v]));
            chain[v + 1] = InOrder(hn::MulAdd(weight, second, chain[v + 1]));
          } else {
            chain[v] = hn::MulAdd(weight, first, chain[v]);
            chain[v + 1] = hn::MulAdd(weight, second, chain[v + 1]);
          }
        }
      }
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v)
    for (std::size_t chain = 1; chain < kChains; ++chain) sum[0][v] = hn::Add(sum[0][v], sum[chain][v]);
  if constexpr (kVectors == 1) {
    StoreF32(d, sum[0][0], output);
  } else {
    for (std::size_t v = 0; v < kVectors; v += 2) StorePair(d, sum[0][v], sum[0][v + 1], output + v * lanes);
  }
}

/// All channels, in blocks of vectors; the last vector overlaps the one before instead of running past the end.
template <class D, class Records, class Stored>
void SumChannels(D d, std::size_t channels, const Records& records, const Stored* HWY_RESTRICT value,
                 Stored* HWY_RESTRICT output) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  for (; channels - c >= 4 * lanes; c += 4 * lanes) SumBlock<4>(d, records, value + c, output + c);
  if (channels - c >= 2 * lanes) {
    SumBlock<2>(d, records, value + c, output + c);
    c += 2 * lanes;
  }
  if (channels - c >= lanes) {
    SumBlock<1>(d, records, value + c, output + c);
    c += lanes;
  }
  if (c == channels) return;
  c = channels - lanes;
  SumBlock<1>(d, records, value + c, output + c);
}

/// The widest vectors that the channels fill.
template <class Records, class Stored>
void SumAllChannels(std::size_t channels, const Records& records, const Stored* HWY_RESTRICT value,
                    Stored* HWY_RESTRICT output) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> single;
  if (channels >= hn::Lanes(full))
    SumChannels(full, channels, records, value, output);
  else if (channels >= hn::Lanes(eight))
    SumChannels(eight, channels, records, value, output);
  else if (channels >= hn::Lanes(four))
    SumChannels(four, channels, records, value, output);
  else
    SumChannels(single, channels, records, value, output);
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
