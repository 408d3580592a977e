// Conversions from storage to arithmetic types, written without branches so that the compiler vectorises them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tmaops/dtype.hpp"

namespace tmaops::ops::ms_deform_attn {

inline float to_float(float16 value) {
  const std::uint32_t sign = (static_cast<std::uint32_t>(value.bits) & 0x8000U) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  const std::uint32_t bias = magnitude >= 0x7c00U ? 0x70000000U : 0x38000000U;  // infinity and NaN, or a normal number
  const std::uint32_t normal = (magnitude << 13) + bias;
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  return std::bit_cast<float>(sign | (magnitude < 0x400U ? subnormal : normal));
}

/// Converts a stored element to the arithmetic type T (float or double).
template <class T, class Stored>
T convert(Stored value) {
  if constexpr (std::is_same_v<Stored, float16>)
    return static_cast<T>(to_float(value));
  else
    return static_cast<T>(value);
}

/// The arithmetic type of a value type: f64 for f64, f32 for all others.
template <class Stored>
using Arithmetic = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

}  // namespace tmaops::ops::ms_deform_attn
