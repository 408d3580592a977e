// The copy of one head whose channels lie apart. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_COPY) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_COPY
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "ops/ms_deform_attn/forward/shared/simd_job.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Copies pixels [begin, end) of one head so that the channels of a pixel lie next to each other.
template <class Bits>
void CopyPixels(const Bits* HWY_RESTRICT from, std::int64_t pixel_stride, std::int64_t channel_stride,
                std::int64_t channels, std::int64_t begin, std::int64_t end, Bits* HWY_RESTRICT to) {
  const auto one_by_one = [&](std::int64_t s, std::int64_t last, std::int64_t c) {
    for (; s < last; ++s)
      for (std::int64_t k = c; k < channels; ++k) to[s * channels + k] = from[s * pixel_stride + k * channel_stride];
  };
  std::int64_t s = begin;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  constexpr std::int64_t kSide = 16 / sizeof(Bits);  // of a block that is turned in registers
  // Pixels of kSide channels in one go: long enough for the hardware to foresee what comes, and what is written stays
  // in the cache until the last channels have been there.
  constexpr std::int64_t kRun = 512;
  const hn::FixedTag<Bits, kSide> d;
  while (pixel_stride == 1 && s + kSide <= end) {
    const std::int64_t last = s + std::min(kRun, (end - s) / kSide * kSide);
    std::int64_t c = 0;
    for (; c + kSide <= channels; c += kSide)
      for (std::int64_t block = s; block < last; block += kSide) {
        hn::Vec<decltype(d)> rows[kSide];
        for (std::int64_t k = 0; k < kSide; ++k) rows[k] = hn::LoadU(d, from + block + (c + k) * channel_stride);
        // Each round of shuffles brings what belongs together one step nearer; after log2(kSide) the block is turned.
        for (std::int64_t round = 1; round < kSide; round *= 2) {
          hn::Vec<decltype(d)> next[kSide];
          for (std::int64_t k = 0; k < kSide / 2; ++k) {
            next[2 * k] = hn::InterleaveLower(d, rows[k], rows[k + kSide / 2]);
            next[2 * k + 1] = hn::InterleaveUpper(d, rows[k], rows[k + kSide / 2]);
          }
          std::copy(next, next + kSide, rows);
        }
        for (std::int64_t k = 0; k < kSide; ++k) hn::StoreU(rows[k], d, to + (block + k) * channels + c);
      }
    one_by_one(s, last, c);
    s = last;
  }
#endif
  one_by_one(s, end, 0);
}

/// Pixels [begin, end) of image n and head m into `map`, (S, D).
void CopyHead(const ForwardJob& job, std::int64_t n, std::int64_t m, std::int64_t begin, std::int64_t end, void* map) {
  with_short_type(job.problem.value_dtype, [&]<class Stored>(Stored*) {
    using Bits = hwy::UnsignedFromSize<sizeof(Stored)>;
    const Layout& layout = job.arguments.value;
    const auto* from = static_cast<const Bits*>(job.arguments.value.data) + value_offset(layout, n, 0, m);
    CopyPixels(from, layout.strides[1], layout.strides[3], job.problem.channels, begin, end, static_cast<Bits*>(map));
  });
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
