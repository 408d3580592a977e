#include "core/convert_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/clones.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tmaops {
namespace {

constexpr std::int64_t kPiece = 256;  // elements that pass through a buffer on the stack at a time

#if defined(__x86_64__)
// The processor's own conversions round as float16 does and keep a NaN's sign and payload as it does.
__attribute__((target("avx,f16c"))) void f16_to_f32_native(const std::uint16_t* in, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < count; ++i) out[i] = detail::f16_bits_to_f32(in[i]);
}

__attribute__((target("avx,f16c"))) void f32_to_f16_native(const float* in, std::int64_t count, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) out[i] = detail::f32_to_f16_bits(in[i]);
}

bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
}
#endif

void f16_to_f32(const std::uint16_t* in, std::int64_t count, float* out) {
#if defined(__x86_64__)
  if (has_f16c()) return f16_to_f32_native(in, count, out);
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = detail::f16_bits_to_f32(in[i]);
}

void f32_to_f16(const float* in, std::int64_t count, std::uint16_t* out) {
#if defined(__x86_64__)
  if (has_f16c()) return f32_to_f16_native(in, count, out);
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = detail::f32_to_f16_bits(in[i]);
}

TMAOPS_CLONES void bf16_to_f32(const std::uint16_t* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
}

TMAOPS_CLONES void f32_to_bf16(const float* in, std::int64_t count, std::uint16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    const std::uint32_t nan = (x >> 16) | 0x40u;
    out[i] = static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
}

template <class T>
void gather(const T* in, std::int64_t stride, std::int64_t count, T* out) {
  if (stride == 1) return void(std::memmove(out, in, static_cast<std::size_t>(count) * sizeof(T)));
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i * stride];
}

template <class T>
void scatter(const T* in, std::int64_t stride, std::int64_t count, T* out) {
  if (stride == 1) return void(std::memmove(out, in, static_cast<std::size_t>(count) * sizeof(T)));
  for (std::int64_t i = 0; i < count; ++i) out[i * stride] = in[i];
}

}  // namespace

void load_f32(const void* data, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t count, float* out) {
  if (dtype == DType::f32) return gather(static_cast<const float*>(data) + offset, stride, count, out);
  const auto convert = dtype == DType::f16 ? &f16_to_f32 : &bf16_to_f32;
  const std::uint16_t* in = static_cast<const std::uint16_t*>(data) + offset;
  if (stride == 1) return convert(in, count, out);
  std::uint16_t dense[kPiece];
  for (std::int64_t i = 0; i < count; i += kPiece) {
    const std::int64_t piece = std::min(kPiece, count - i);
    gather(in + i * stride, stride, piece, dense);
    convert(dense, piece, out + i);
  }
}

void store_f32(void* data, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t count, const float* in) {
  if (dtype == DType::f32) return scatter(in, stride, count, static_cast<float*>(data) + offset);
  const auto convert = dtype == DType::f16 ? &f32_to_f16 : &f32_to_bf16;
  std::uint16_t* out = static_cast<std::uint16_t*>(data) + offset;
  if (stride == 1) return convert(in, count, out);
  std::uint16_t dense[kPiece];
  for (std::int64_t i = 0; i < count; i += kPiece) {
    const std::int64_t piece = std::min(kPiece, count - i);
    convert(in + i, piece, dense);
    scatter(dense, stride, piece, out + i * stride);
  }
}

}  // namespace tmaops
