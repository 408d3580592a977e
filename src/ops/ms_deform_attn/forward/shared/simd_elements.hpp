// Vectors of channels from and to memory, converted to f32. Compiled once per SIMD target: the guard is a toggle.
#if defined(TMAOPS_MS_DEFORM_ATTN_SIMD_ELEMENTS) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_MS_DEFORM_ATTN_SIMD_ELEMENTS
#undef TMAOPS_MS_DEFORM_ATTN_SIMD_ELEMENTS
#else
#define TMAOPS_MS_DEFORM_ATTN_SIMD_ELEMENTS
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tmaops/dtype.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
hn::Vec<D> LoadF32(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
hn::Vec<D> LoadF32(D d, const float16* from) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
  // Without F16C, Highway's own conversion makes numbers of infinities and NaN.
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(from[i]);
  return hn::Load(d, lanes);
#else
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
}
template <class D>
hn::Vec<D> LoadF32(D d, const bfloat16* from) {
  const hn::Rebind<hwy::bfloat16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::bfloat16_t*>(from)));
}

/// Writes a vector, past the caches if `streamed`: then `to` is a multiple of its size. Less than 16 bytes never are.
template <class D>
void Put(D d, hn::Vec<D> vector, hn::TFromD<D>* to, bool streamed) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    if (streamed) return hn::Stream(vector, d, to);
  }
  hn::StoreU(vector, d, to);
}

template <class D>
void StoreF32(D d, hn::Vec<D> vector, float* to, bool streamed = false) {
  Put(d, vector, to, streamed);
}
template <class D>
void StoreF32([[maybe_unused]] D d, hn::Vec<D> vector, float16* to, [[maybe_unused]] bool streamed = false) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const hn::Rebind<hwy::float16_t, D> half;
  Put(half, hn::DemoteTo(half, vector), reinterpret_cast<hwy::float16_t*>(to), streamed);
#else
  // Without F16C, Highway's own conversion does not round to nearest.
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(vector, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i] = float16(lanes[i]);
#endif
}
/// bfloat16 in the upper half of each lane, rounded to nearest even; the lower half is rubbish.
template <class D>
hn::Vec<hn::RebindToUnsigned<D>> RoundToUpperHalf(D d, hn::Vec<D> vector) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, vector);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  return hn::BitCast(du, hn::IfThenElse(hn::IsNaN(vector), hn::BitCast(d, quiet), hn::BitCast(d, rounded)));
}
template <class D>
void StoreF32(D d, hn::Vec<D> vector, bfloat16* to, bool streamed = false) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint16_t, D> half;
  const auto bits = hn::ShiftRight<16>(RoundToUpperHalf(d, vector));
  Put(half, hn::DemoteTo(half, hn::BitCast(di, bits)), reinterpret_cast<std::uint16_t*>(to), streamed);
}

/// Two vectors of channels. Which channels go to which is the type's affair: StorePair undoes it.
template <class D, class Stored>
void LoadPair(D d, const Stored* from, hn::Vec<D>& first, hn::Vec<D>& second) {
  first = LoadF32(d, from);
  second = LoadF32(d, from + hn::Lanes(d));
}
template <class D, class Stored>
void StorePair(D d, hn::Vec<D> first, hn::Vec<D> second, Stored* to, bool streamed = false) {
  StoreF32(d, first, to, streamed);
  StoreF32(d, second, to + hn::Lanes(d), streamed);
}
#if HWY_TARGET != HWY_SCALAR && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/// bfloat16: even channels and odd channels, so that one load and two cheap operations convert 32 bits at a time.
template <class D>
void LoadPair(D d, const bfloat16* from, hn::Vec<D>& first, hn::Vec<D>& second) {
  const hn::RebindToUnsigned<D> du;
  const hn::Repartition<std::uint8_t, D> bytes;
  auto both = hn::BitCast(du, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  // Loaded once, where GCC would load it again for the mask. Not so for 16 lanes: Zen 4's order was measured without.
  if constexpr (hn::MaxLanes(D()) == 8) __asm__("" : "+x"(both.raw));
#endif
  first = hn::BitCast(d, hn::ShiftLeft<16>(both));
  second = hn::BitCast(d, hn::And(both, hn::Set(du, 0xffff0000U)));
}
template <class D>
void StorePair(D d, hn::Vec<D> first, hn::Vec<D> second, bfloat16* to, bool streamed = false) {
  const hn::RebindToUnsigned<D> du;
  const hn::Repartition<std::uint8_t, D> bytes;
  const auto low = hn::ShiftRight<16>(RoundToUpperHalf(d, first));
  const auto high = hn::And(RoundToUpperHalf(d, second), hn::Set(du, 0xffff0000U));
  Put(bytes, hn::BitCast(bytes, hn::Or(low, high)), reinterpret_cast<std::uint8_t*>(to), streamed);
}
#endif

/// Stores two vectors of channels that LoadPair made of values of type Stored; as these, or as f32.
template <class Stored, class D, class Out>
void StoreSums(D d, hn::Vec<D> first, hn::Vec<D> second, Out* to, bool streamed = false) {
#if HWY_TARGET != HWY_SCALAR && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if constexpr (std::is_same_v<Stored, bfloat16> && std::is_same_v<Out, float>)
    return hn::StoreInterleaved2(first, second, d, to);
#endif
  StorePair(d, first, second, to, streamed);
}

/// x and y of a vector of points.
template <class D, class Stored>
void LoadCoordinates(D d, const Stored* from, hn::Vec<D>& x, hn::Vec<D>& y) {
  const auto low = LoadF32(d, from);
  const auto high = LoadF32(d, from + hn::Lanes(d));
#if HWY_TARGET == HWY_SCALAR
  x = low;
  y = high;
#else
  x = hn::ConcatEven(d, high, low);
  y = hn::ConcatOdd(d, high, low);
#endif
}
template <class D>
void LoadCoordinates(D d, const float* from, hn::Vec<D>& x, hn::Vec<D>& y) {
  hn::LoadInterleaved2(d, from, x, y);
}
#if HWY_TARGET != HWY_SCALAR && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
template <class D>
void LoadCoordinates(D d, const bfloat16* from, hn::Vec<D>& x, hn::Vec<D>& y) {
  LoadPair(d, from, x, y);
}
#endif

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
