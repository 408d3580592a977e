// Maps of 16-bit values that cost less to unpack: the last, small levels hold f32, and a point of a large and one of a
// small level are summed alternately. Compiled once per SIMD target: the guard is a toggle.
//
// Intel's processors with 512 bits need two vector operations for every 16 values they convert, and wait for those; f32
// waits for loads: alternately, the two hide each other. The large levels hold the values as they are.
//
// Zen 4's conversion of f16 takes a load for every 8 values, and loads are what the sums wait for. So there the large
// levels hold coded pairs: 32 bits with channels c and c + 16 of a block of 32, which four bitwise operations turn into
// two f32 scaled by 2^-112. They wait for vector operations instead (docs/findings/ms_deform_attn_cpu.md, D12).
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

#include "ops/ms_deform_attn/forward/cpu/simd_packed/packed_job.hpp"
#include "ops/ms_deform_attn/forward/cpu/simd_packed/simd_records.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_sums.hpp"

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

/// One pixel's channels as f32, two vectors at a time as LoadPair has them: f16 in their order, bf16 even ones first.
template <class Stored>
void StoreWidened(const Stored* HWY_RESTRICT from, std::int64_t channels, float* HWY_RESTRICT to) {
  const PairTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < channels; c += 2 * lanes) {
    hn::Vec<PairTag> first;
    hn::Vec<PairTag> second;
    vectors::LoadPair(d, from + c, first, second);
    hn::Stream(first, d, to + c);
    hn::Stream(second, d, to + c + lanes);
  }
}

/// Sums over one point after another of two vectors of channels; each corner is a chain of its own. kCoded: those that
/// a pair holds, c and c + 16 of a block of 32; else those that LoadPair takes from 2 * lanes in a row. kChannels: of a
/// pixel, or 0 for any number, which takes more registers for addresses.
template <class Stored, std::int64_t kChannels, bool kCoded>
class MixedSums {
 public:
  /// Part `half` (0, lanes, ... below kChannelBlock) of the block that starts at channel `block`.
  MixedSums(const RecordsOf<kChannels>& records, const Stored* HWY_RESTRICT map, std::int64_t block, std::int64_t half)
      : records_(records), large_(map + block + 2 * half), widened_(map + 2 * (block + (kCoded ? half : 2 * half))) {
    for (std::size_t corner = 0; corner < Records::kCorners; ++corner) first_[corner] = second_[corner] = hn::Zero(d_);
  }

  using Corners = simd_packed::HWY_NAMESPACE::Corners<Stored, kChannels>;
  HWY_INLINE Corners large_of(std::size_t k) const { return corners(large_, k); }
  HWY_INLINE Corners widened_of(std::size_t k) const { return corners(widened_, k); }

  HWY_INLINE void add_large(const Corners& at, std::size_t corner) {
    const auto weight = weight_of(at, corner);
    if constexpr (kCoded) {
      const auto pairs = load_pairs(at, corner);
      add(corner, weight, first_of(pairs), second_of(hn::ShiftLeft<3>(pairs), hn::RotateRight<16>(pairs)));
    } else {
      Vector first;
      Vector second;
      vectors::LoadPair(d_, at.pixel(corner), first, second);
      add(corner, weight, first, second);
    }
  }
  HWY_INLINE void add_widened(const Corners& at, std::size_t corner) {
    const float* from = widened(at, corner);
    add(corner, weight_of(at, corner), hn::LoadU(d_, from), hn::LoadU(d_, from + kApart));
  }
  /// One of each.
  HWY_INLINE void add_both(const Corners& of_large, const Corners& of_widened, std::size_t corner) {
    if constexpr (kCoded) {
      add_both_in_order(of_large, of_widened, corner);
    } else {
      add_large(of_large, corner);
      add_widened(of_widened, corner);
    }
  }
  /// The two sums, past the caches if `streamed`; `output` is where the block starts.
  void store(bool streamed, Stored* HWY_RESTRICT output, std::int64_t half) const {
    if constexpr (kCoded) {
      vectors::StoreF32(d_, total(first_), output + half, streamed);
      vectors::StoreF32(d_, total(second_), output + half + kChannelBlock, streamed);
    } else {
      vectors::StorePair(d_, total(first_), total(second_), output + 2 * half, streamed);
    }
  }

 private:
  using Vector = hn::Vec<PairTag>;
  using WordTag = hn::RebindToUnsigned<PairTag>;
  using Words = hn::Vec<WordTag>;

  /// f32 of a widened pixel between the two vectors.
  static constexpr std::size_t kApart = kCoded ? static_cast<std::size_t>(kChannelBlock) : hn::MaxLanes(PairTag());

  /// For coded pairs, in one of the orders that take least: 5 of 5.8 cycles, which the compiler's own takes.
  HWY_INLINE void add_both_in_order(const Corners& of_pairs, const Corners& of_widened, std::size_t corner) {
    using vectors::InOrder;
    const float* from = widened(of_widened, corner);
    const auto weight = InOrder(weight_of(of_pairs, corner));
    const auto widened_weight = InOrder(weight_of(of_widened, corner));
    const auto pairs = load_pairs(of_pairs, corner);
    const auto rotated = InOrder(hn::RotateRight<16>(pairs));
    auto second = InOrder(hn::MulAdd(widened_weight, hn::LoadU(d_, from + kApart), second_[corner]));
    auto first = InOrder(hn::MulAdd(widened_weight, hn::LoadU(d_, from), first_[corner]));
    const auto low = InOrder(first_of(pairs));
    const auto shifted = InOrder(hn::ShiftLeft<3>(pairs));
    first_[corner] = InOrder(hn::MulAdd(weight, low, first));
    const auto high = InOrder(second_of(shifted, rotated));
    second_[corner] = InOrder(hn::MulAdd(weight, high, second));
  }
  HWY_INLINE Corners corners(const Stored* map, std::size_t k) const {
    return records_.corners(map, k - k % kMaxLanes, k % kMaxLanes);
  }
  HWY_INLINE const float* widened(const Corners& at, std::size_t corner) const {
    return reinterpret_cast<const float*>(at.pixel(corner, 2));
  }
  HWY_INLINE Words load_pairs(const Corners& at, std::size_t corner) const {
    // Loaded once: GCC makes it an operand in memory of each of the three that use it.
    return vectors::InOrder(hn::LoadU(words_, reinterpret_cast<const std::uint32_t*>(at.pixel(corner))));
  }
  HWY_INLINE Vector weight_of(const Corners& at, std::size_t corner) const { return hn::Set(d_, at.weight(corner)); }
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
  const RecordsOf<kChannels>& records_;
  const Stored* HWY_RESTRICT large_;
  const Stored* HWY_RESTRICT widened_;
  Vector first_[Records::kCorners];
  Vector second_[Records::kCorners];
};

/// The sums of all channels over records whose first `large` points lie on levels of 16-bit values, the others on
/// widened ones; past the caches if `streamed`.
template <bool kCoded, std::int64_t kChannels, class Stored>
void SumMixed(const RecordsOf<kChannels>& records, std::size_t large, const Stored* HWY_RESTRICT map, bool streamed,
              Stored* HWY_RESTRICT output) {
  const std::int64_t channels = kChannels == 0 ? records.channels : kChannels;
  const std::size_t both = std::min(large, records.count - large);
  for (std::int64_t block = 0; block < channels; block += kPairedBlock) {
    for (std::int64_t half = 0; half < kChannelBlock; half += static_cast<std::int64_t>(hn::Lanes(PairTag()))) {
      MixedSums<Stored, kChannels, kCoded> sums(records, map, block, half);
      for (std::size_t k = 0; k < both; ++k) {
        const auto of_large = sums.large_of(k);
        const auto of_widened = sums.widened_of(large + k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_both(of_large, of_widened, corner);
      }
      for (std::size_t k = both; k < large; ++k) {
        const auto of_large = sums.large_of(k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_large(of_large, corner);
      }
      for (std::size_t k = large + both; k < records.count; ++k) {
        const auto of_widened = sums.widened_of(k);
        HWY_UNROLL(4)
        for (std::size_t corner = 0; corner < Records::kCorners; ++corner) sums.add_widened(of_widened, corner);
      }
      sums.store(streamed, output + block, half);
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
