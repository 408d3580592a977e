// The copy of pixels whose channels lie apart. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_COPY) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Copies pixels [0, end) of one head so that the channels of a pixel lie next to each other.
template <class Bits>
void CopyPixels(const Bits* HWY_RESTRICT from, std::int64_t pixel_stride, std::int64_t channel_stride,
                std::int64_t channels, std::int64_t end, Bits* HWY_RESTRICT to) {
  const auto one_by_one = [&](std::int64_t s, std::int64_t last, std::int64_t c) {
    for (; s < last; ++s)
      for (std::int64_t k = c; k < channels; ++k) to[s * channels + k] = from[s * pixel_stride + k * channel_stride];
  };
  std::int64_t s = 0;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  // kSide pixels and the channels of a vector are turned in registers, each 16 bytes of the vectors by themselves.
  constexpr std::int64_t kSide = 16 / sizeof(Bits);
  const hn::CappedTag<Bits, 64 / sizeof(Bits)> d;
  const hn::FixedTag<Bits, kSide> part;
  const auto wide = static_cast<std::int64_t>(hn::Lanes(d));
  // Pixels of some channels in one go: long enough for the hardware to foresee what comes, and what is written stays
  // in the cache until the last channels have been there.
  constexpr std::int64_t kRun = 512;
  HWY_ALIGN Bits gathered[kSide][64 / sizeof(Bits)];
  while (pixel_stride == 1 && s + kSide <= end) {
    const std::int64_t last = s + std::min(kRun, (end - s) / kSide * kSide);
    std::int64_t c = 0;
    const auto turn = [&]<class Tag>(const Tag& tag) {
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
      for (; c + lanes <= channels; c += lanes)
        for (std::int64_t block = s; block < last; block += kSide) {
          hn::Vec<Tag> rows[kSide];
          for (std::int64_t k = 0; k < kSide; ++k) {
            for (std::int64_t b = 0; b < lanes / kSide; ++b)
              hn::Store(hn::LoadU(part, from + block + (c + b * kSide + k) * channel_stride), part,
                        gathered[k] + b * kSide);
            rows[k] = hn::Load(tag, gathered[k]);
          }
          // Each round of shuffles brings what belongs together one step nearer; after log2(kSide) the block is turned.
          for (std::int64_t round = 1; round < kSide; round *= 2) {
            hn::Vec<Tag> next[kSide];
            for (std::int64_t k = 0; k < kSide / 2; ++k) {
              next[2 * k] = hn::InterleaveLower(tag, rows[k], rows[k + kSide / 2]);
              next[2 * k + 1] = hn::InterleaveUpper(tag, rows[k], rows[k + kSide / 2]);
            }
            std::copy(next, next + kSide, rows);
          }
          for (std::int64_t k = 0; k < kSide; ++k) hn::StoreU(rows[k], tag, to + (block + k) * channels + c);
        }
    };
    if (wide > kSide) turn(d);
    turn(part);
    one_by_one(s, last, c);
    s = last;
  }
#endif
  one_by_one(s, end, 0);
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
