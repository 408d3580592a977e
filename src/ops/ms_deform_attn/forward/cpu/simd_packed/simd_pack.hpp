// The copy of an image's value head by head that simd_packed works on. Compiled once per SIMD target: the guard is a
// toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_PACK) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_PACK
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_PACK
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_PACK
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ops/ms_deform_attn/forward/cpu/simd_packed/packed_job.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Fills rows [begin, end) of the layout in the maps of all heads; false when a value that is not masked is infinite or
/// NaN.
template <class Stored>
bool PackRows(const ImageJob& image, Stored* maps, std::int64_t begin, std::int64_t end) {
  using Bits = hwy::UnsignedFromSize<sizeof(Stored)>;
  const hn::CappedTag<Bits, kChannelBlock> d;
  constexpr Bits kExponent = std::is_same_v<Stored, float>     ? static_cast<Bits>(0x7f800000U)
                             : std::is_same_v<Stored, float16> ? static_cast<Bits>(0x7c00U)
                                                               : static_cast<Bits>(0x7f80U);
  const auto exponent = hn::Set(d, kExponent);
  auto largest = hn::Zero(d);
  const Problem& problem = image.job.direct.problem;
  const Arguments& arguments = image.job.direct.arguments;
  const Layout& value = arguments.value;
  const auto* from = static_cast<const Stored*>(arguments.value.data);
  const HeadMapLayout& layout = image.job.layout;
  const std::int64_t channels = problem.channels;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::vector<Bits> turned;  // the pixels of a row and head whose channels lie apart
  const auto put = [&](const HeadMapLayout::Row& row, std::int64_t m, std::int64_t j, const Bits* pixel,
                       bool left_out) {
    auto* to = reinterpret_cast<Bits*>(maps + (m * layout.pixels + row.at + j + 1) * channels);
    if (left_out) {
      std::fill_n(to, channels, Bits{});
      return;
    }
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const auto bits = hn::LoadU(d, pixel + c);
      largest = hn::Max(largest, hn::And(bits, exponent));
      hn::Stream(bits, d, to + c);
    }
  };
  for (std::int64_t r = begin; r < end; ++r) {
    const HeadMapLayout::Row& row = layout.rows[static_cast<std::size_t>(r)];
    for (std::int64_t m = 0; m < problem.heads; ++m) {
      Stored* to = maps + (m * layout.pixels + row.at) * channels;
      std::fill_n(to, (row.source < 0 ? row.pitch : 1) * channels, Stored{});
    }
    if (row.source < 0) continue;
    const std::int64_t count = row.pitch - 1;
    const auto left_out = [&](std::int64_t j) { return masked(problem, arguments, image.image, row.source + j); };
    // All heads of a pixel at once: they lie in one run of the tensor.
    for (std::int64_t j = 0; problem.dense_channels && j < count; ++j)
      for (std::int64_t m = 0; m < problem.heads; ++m) {
        const auto* pixel = from + value_offset(value, image.image, row.source + j, m);
        put(row, m, j, reinterpret_cast<const Bits*>(pixel), left_out(j));
      }
    turned.resize(static_cast<std::size_t>(count * channels));
    for (std::int64_t m = 0; !problem.dense_channels && m < problem.heads; ++m) {
      simd::copy_pixels(image.job.direct, image.image, m, row.source, row.source + count, turned.data());
      for (std::int64_t j = 0; j < count; ++j) put(row, m, j, turned.data() + j * channels, left_out(j));
    }
  }
  hwy::FlushStream();
  return hn::AllFalse(d, hn::Eq(largest, exponent));
}

bool Pack(const ImageJob& image, void* maps, std::int64_t begin, std::int64_t end) {
  return with_short_type(image.job.direct.problem.value_dtype, [&]<class Stored>(Stored*) {
    return PackRows(image, static_cast<Stored*>(maps), begin, end);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
