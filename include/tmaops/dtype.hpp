// Element types of tensors, and the two 16-bit floating-point types with exact conversions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "tmaops/export.hpp"

namespace tmaops {

/// Element type of a tensor. f16 is IEEE 754 binary16, bf16 the upper half of an IEEE 754 binary32.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, u8 };

/// Size of one element in bytes; 0 for a value that is no type.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// "f64", "f32", "f16", "bf16", "i64", "i32" or "u8"; "?" for a value that is no type.
TMAOPS_API std::string_view to_string(DType dtype);

/// The inverse of to_string; nothing when the name is none of the seven.
TMAOPS_API std::optional<DType> parse_dtype(std::string_view name);

namespace detail {

/// binary32 -> binary16, round to nearest even; overflow gives infinity, NaN stays NaN (quiet).
constexpr std::uint16_t f32_to_f16_bits(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (x >> 16) & 0x8000u;
  const std::uint32_t magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {                                                    // below 2^-14: subnormal result
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);           // below 2^-25
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1u);
    const std::uint32_t up = (rest > half || (rest == half && (kept & 1u))) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (kept + up));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

/// binary16 -> binary32, exact.
constexpr float f16_bits_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    std::uint32_t shift = 0;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      ++shift;
    }
    return std::bit_cast<float>(sign | ((113u - shift) << 23) | ((mantissa & 0x3ffu) << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/// binary32 -> bfloat16, round to nearest even; NaN stays NaN (quiet).
constexpr std::uint16_t f32_to_bf16_bits(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

/// bfloat16 -> binary32, exact.
constexpr float bf16_bits_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// binary64 -> binary32 rounded to odd: a second rounding to 16 bits then gives the correctly rounded result.
constexpr float f64_to_f32_round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if ((bits & 0x7fffffffu) == 0x7f800000u) return std::bit_cast<float>((bits & 0x80000000u) | 0x7f7fffffu);
  const double magnitude = value < 0 ? -value : value;
  const double rounded = nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest);
  if (rounded > magnitude) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace detail

/// IEEE 754 binary16 storage. Arithmetic happens in f32: convert, compute, convert back.
struct float16 {
  std::uint16_t bits = 0;
  constexpr float16() = default;
  constexpr explicit float16(float value) : bits(detail::f32_to_f16_bits(value)) {}
  constexpr explicit float16(double value) : bits(detail::f32_to_f16_bits(detail::f64_to_f32_round_to_odd(value))) {}
  constexpr explicit operator float() const { return detail::f16_bits_to_f32(bits); }
  constexpr explicit operator double() const { return detail::f16_bits_to_f32(bits); }
};

/// bfloat16 storage (8 exponent bits, 7 mantissa bits). Arithmetic happens in f32.
struct bfloat16 {
  std::uint16_t bits = 0;
  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(detail::f32_to_bf16_bits(value)) {}
  constexpr explicit bfloat16(double value) : bits(detail::f32_to_bf16_bits(detail::f64_to_f32_round_to_odd(value))) {}
  constexpr explicit operator float() const { return detail::bf16_bits_to_f32(bits); }
  constexpr explicit operator double() const { return detail::bf16_bits_to_f32(bits); }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<float16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<bfloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::u8> {};
}  // namespace detail

/// The DType of a C++ element type (const allowed).
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

}  // namespace tmaops
