// Conversions between storage and arithmetic types.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/convert_rows.hpp"
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

/// to[i] = from[i * stride], converted: f16 by the processor's own conversion, the others in a loop, which costs less
/// than a call. The rows do not overlap.
template <class T, class Stored>
void load_row(const Stored* from, std::int64_t stride, std::int64_t count, T* to) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, float16>)
    load_f32(from, DType::f16, 0, stride, count, to);
  else if (stride == 1)
    if constexpr (std::is_same_v<T, Stored>)
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert<T>(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert<T>(from[i * stride]);
}

/// to[i * stride] = from[i], rounded to nearest even.
template <class T, class Stored>
void store_row(const T* from, std::int64_t count, Stored* to, std::int64_t stride) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, float16>)
    store_f32(to, DType::f16, 0, stride, count, from);
  else if (stride == 1)
    if constexpr (std::is_same_v<T, Stored>)
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Stored>(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i * stride] = static_cast<Stored>(from[i]);
}

/// The arithmetic type of a value type: f64 for f64, f32 for all others.
template <class Stored>
using Arithmetic = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

}  // namespace tmaops::ops::ms_deform_attn
