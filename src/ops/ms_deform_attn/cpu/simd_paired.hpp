// Maps of f16 values that cost less to unpack. Compiled once per SIMD target: the guard is a toggle.
//
// Zen 4's conversion of f16 takes a load for every 8 values, and loads are what the sums wait for. So the large levels
// hold pairs: 32 bits with channels c and c + 16 of a block of 32, which four bitwise operations turn into two f32
// scaled by 2^-112. They wait for vector operations instead. The small levels hold f32, which wait for loads: summed
// alternately, the two hide each other (docs/findings/ms_deform_attn_cpu.md).
//
// A pair w is [s of the first][3 bits][exponent and mantissa of the first][13 bits]: with the bits between masked off,
// the exponent of 5 bits is the end of one of 8. The second value is (w << 3) ^ (w rotated by 16) behind the same mask.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_PAIRED) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_PAIRED
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_PAIRED
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_PAIRED
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/ms_deform_attn/cpu/packed_job.hpp"
#include "ops/ms_deform_attn/cpu/simd_records.hpp"
#include "ops/ms_deform_attn/cpu/simd_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::uint32_t kPairMask = 0x8fffe000U;

/// A vector of a block of 32 channels: lanes of channels c and c + 16.
using PairTag = hn::CappedTag<float, static_cast<std::size_t>(kChannelBlock)>;

/// One pixel's channels as pairs.
inline void StorePairs(const std::uint16_t* HWY_RESTRICT from, std::int64_t channels, std::uint16_t* HWY_RESTRICT to) {
  const hn::RebindToUnsigned<PairTag> words;
  const hn::Rebind<std::uint16_t, PairTag> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto bits = [&](std::uint16_t mask) { return hn::Set(d, mask); };
  for (std::int64_t block = 0; block < channels; block += kPairedBlock) {
    for (std::int64_t c = 0; c < kChannelBlock; c += lanes) {
      const auto a = hn::LoadU(d, from + block + c);
      const auto b = hn::LoadU(d, from + block + c + kChannelBlock);
      // The upper half of w is [a15][3 free bits][a14 to a3], the lower one [a2 to a0][13 free bits]. Those are what
      // solves the equation of the second value, bit by bit.
      const auto a_3 = hn::ShiftRight<3>(a);
      const auto b_3 = hn::ShiftRight<3>(b);
      const auto low = hn::And(hn::Xor(a, b_3), bits(0x0fff));
      const auto bit_12 = hn::And(hn::Xor(a_3, hn::ShiftLeft<10>(b)), bits(0x1000));
      const auto lower = hn::Or(hn::ShiftLeft<13>(a), hn::Or(low, bit_12));
      const auto bit_28 = hn::And(hn::Xor(hn::ShiftLeft<10>(a), b_3), bits(0x1000));
      const auto bits_29_30 = hn::And(hn::Xor(hn::ShiftLeft<13>(b), hn::ShiftLeft<3>(low)), bits(0x6000));
      const auto own = hn::Or(hn::And(a, bits(0x8000)), hn::And(a_3, bits(0x0fff)));
      const auto upper = hn::Or(own, hn::Or(bit_28, bits_29_30));
      const auto pairs = hn::Or(hn::ShiftLeft<16>(hn::PromoteTo(words, upper)), hn::PromoteTo(words, lower));
      hn::Stream(pairs, words, reinterpret_cast<std::uint32_t*>(to + block) + c);
    }
  }
}

/// One pixel's channels as f32.
inline void StoreWidened(const std::uint16_t* HWY_RESTRICT from, std::int64_t channels,
                         std::uint16_t* HWY_RESTRICT to) {
  const PairTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < channels; c += lanes)
    hn::Stream(vectors::LoadF32(d, reinterpret_cast<const float16*>(from + c)), d, reinterpret_cast<float*>(to) + c);
}

/// Rounds and writes past the caches.
inline void StreamF16(hn::Vec<PairTag> vector, float16* to) {
  const PairTag d;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const hn::Rebind<hwy::float16_t, PairTag> half;
  hn::Stream(hn::DemoteTo(half, vector), half, reinterpret_cast<hwy::float16_t*>(to));
#else
  vectors::StoreF32(d, vector, to);
#endif
}

/// Sums over one point after another of the channels c and c + 16; each corner is a chain of its own. kChannels: of a
/// pixel, or 0 for any number, which takes more registers for addresses.
template <std::int64_t kChannels>
class PairedSums {
 public:
  /// Lanes of `half` on, of the block that starts at channel `block`.
  PairedSums(const Records& records, const float16* HWY_RESTRICT map, std::int64_t block, std::int64_t half)
      : records_(records), pairs_(map + block + 2 * half), widened_(map + 2 * (block + half)) {
    for (std::size_t corner = 0; corner < Records::kCorners; ++corner) first_[corner] = second_[corner] = hn::Zero(d_);
  }

  struct Corners {
    const float16* upper;
    const float16* lower;
    const float* weight;
  };
  HWY_INLINE Corners pairs_of(std::size_t k) const { return corners(pairs_, k); }
  HWY_INLINE Corners widened_of(std::size_t k) const { return corners(widened_, k); }

  HWY_INLINE void add_pairs(const Corners& at, std::size_t corner) {
    const auto weight = weight_of(at, corner);
    const auto pairs = load_pairs(at, corner);
    add(corner, weight, first_of(pairs), second_of(hn::ShiftLeft<3>(pairs), hn::RotateRight<16>(pairs)));
  }
  HWY_INLINE void add_widened(const Corners& at, std::size_t corner) {
    const float* from = widened(at, corner);
    add(corner, weight_of(at, corner), hn::LoadU(d_, from), hn::LoadU(d_, from + kChannelBlock));
  }
  /// One of each, in one of the orders that take least: 5 of 5.8 cycles, which the compiler's own takes.
  HWY_INLINE void add_both(const Corners& of_pairs, const Corners& of_widened, std::size_t corner) {
    using vectors::InOrder;
    const float* from = widened(of_widened, corner);
    const auto weight = InOrder(weight_of(of_pairs, corner));
    const auto widened_weight = InOrder(weight_of(of_widened, corner));
    const auto pairs = load_pairs(of_pairs, corner);
    const auto rotated = InOrder(hn::RotateRight<16>(pairs));
    auto second = InOrder(hn::MulAdd(widened_weight, hn::LoadU(d_, from + kChannelBlock), second_[corner]));
    auto first = InOrder(hn::MulAdd(widened_weight, hn::LoadU(d_, from), first_[corner]));
    const auto low = InOrder(first_of(pairs));
    const auto shifted = InOrder(hn::ShiftLeft<3>(pairs));
    first_[corner] = InOrder(hn::MulAdd(weight, low, first));
    const auto high = InOrder(second_of(shifted, rotated));
    second_[corner] = InOrder(hn::MulAdd(weight, high, second));
  }
  /// The two sums, past the caches if `streamed`.
  void store(bool streamed, float16* HWY_RESTRICT first, float16* HWY_RESTRICT second) const {
    if (streamed) {
      StreamF16(total(first_), first);
      StreamF16(total(second_), second);
    } else {
      vectors::StoreF32(d_, total(first_), first);
      vectors::StoreF32(d_, total(second_), second);
    }
  }

 private:
  using Vector = hn::Vec<PairTag>;
  using WordTag = hn::RebindToUnsigned<PairTag>;
  using Words = hn::Vec<WordTag>;

  std::int64_t channels() const { return kChannels == 0 ? records_.channels : kChannels; }
  HWY_INLINE Corners corners(const float16* map, std::size_t k) const {
    const float16* upper = vectors::PlainBase(map + records_.offset[k]);
    return {
        .upper = upper, .lower = vectors::PlainBase(upper + records_.row_step[k]), .weight = records_.weights_of(k)};
  }
  const float16* address(const Corners& at, std::size_t corner) const { return corner < 2 ? at.upper : at.lower; }
  HWY_INLINE const float* widened(const Corners& at, std::size_t corner) const {
    return reinterpret_cast<const float*>(address(at, corner) + (corner % 2 == 0 ? 0 : 2 * channels()));
  }
  HWY_INLINE Words load_pairs(const Corners& at, std::size_t corner) const {
    const auto* from = reinterpret_cast<const std::uint32_t*>(address(at, corner) + (corner % 2 == 0 ? 0 : channels()));
    // Loaded once: GCC makes it an operand in memory of each of the three that use it.
    return vectors::InOrder(hn::LoadU(words_, from));
  }
  HWY_INLINE Vector weight_of(const Corners& at, std::size_t corner) const {
    return hn::Set(d_, at.weight[corner * kMaxLanes]);
  }
  HWY_INLINE Vector first_of(Words pairs) const { return hn::BitCast(d_, hn::And(pairs, hn::Set(words_, kPairMask))); }
  HWY_INLINE Vector second_of(Words shifted, Words rotated) const {
    const auto mask = hn::Set(words_, kPairMask);
#if HWY_TARGET == HWY_AVX3
    // One instruction in place of `shifted`: GCC would write to a copy of the mask.
    return hn::BitCast(d_, Words{_mm512_ternarylogic_epi32(shifted.raw, rotated.raw, mask.raw, 0x28)});
#else
    return hn::BitCast(d_, hn::And(mask, hn::Xor(shifted, rotated)));
#endif
  }
  HWY_INLINE void add(std::size_t corner, Vector weight, Vector first, Vector second) {
    first_[corner] = hn::MulAdd(weight, first, first_[corner]);
    second_[corner] = hn::MulAdd(weight, second, second_[corner]);
  }
  Vector total(const Vector* sums) const { return hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])); }

  PairTag d_;
  WordTag words_;
  const Records& records_;
  const float16* HWY_RESTRICT pairs_;
  const float16* HWY_RESTRICT widened_;
  Vector first_[Records::kCorners];
  Vector second_[Records::kCorners];
};

template <std::int64_t kChannels>
void SumPairs(const Records& records, std::size_t paired, const float16* HWY_RESTRICT map, bool streamed,
              float16* HWY_RESTRICT output) {
  const std::int64_t channels = kChannels == 0 ? records.channels : kChannels;
  const std::size_t both = std::min(paired, records.count - paired);
  for (std::int64_t block = 0; block < channels; block += kPairedBlock) {
    for (std::int64_t half = 0; half < kChannelBlock; half += static_cast<std::int64_t>(hn::Lanes(PairTag()))) {
      PairedSums<kChannels> sums(records, map, block, half);
      for (std::size_t k = 0; k < both; ++k) {
        const auto pairs = sums.pairs_of(k);
        const auto widened = sums.widened_of(paired + k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_both(pairs, widened, corner);
      }
      for (std::size_t k = both; k < paired; ++k) {
        const auto pairs = sums.pairs_of(k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_pairs(pairs, corner);
      }
      for (std::size_t k = paired + both; k < records.count; ++k) {
        const auto widened = sums.widened_of(k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_widened(widened, corner);
      }
      sums.store(streamed, output + block + half, output + block + half + kChannelBlock);
    }
  }
}

/// The sums of all channels over records whose first `paired` points lie on levels of pairs, the others on widened
/// ones.
inline void SumPairs(const Records& records, std::size_t paired, const float16* HWY_RESTRICT map, bool streamed,
                     float16* HWY_RESTRICT output) {
  if (records.channels == kPairedBlock)
    SumPairs<kPairedBlock>(records, paired, map, streamed, output);
  else
    SumPairs<0>(records, paired, map, streamed, output);
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
