// The sampling points of one query and head, in any layout and type, as dense rows of the arithmetic type.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/convert_rows.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"
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

/// Rows [n, q, m] of sampling_locations (two elements per point: x, y) or attention_weights (one).
class PointRows {
 public:
  PointRows(const Problem& problem, const ConstTensorView& tensor, int elements_per_point) : tensor_(tensor) {
    const std::int64_t step = elements_per_point == 2 ? xy_stride(tensor) : 0;
    for (const Level& level : problem.levels)
      for (std::int64_t p = 0; p < level.points; ++p)
        for (int e = 0; e < elements_per_point; ++e)
          offsets_.push_back(point_offset(problem, level, p, tensor) + e * step);
    for (std::size_t i = 0; i < offsets_.size(); ++i) dense_ = dense_ && offsets_[i] == static_cast<std::int64_t>(i);
  }

  /// Elements [begin, end) of the row, counted over points.
  template <class T>
  void load(std::int64_t n, std::int64_t q, std::int64_t m, std::size_t begin, std::size_t end, T* to) const {
    with_float_type(tensor_.dtype, [&]<class Stored>(Stored*) {
      const Stored* from = static_cast<const Stored*>(tensor_.data) + head_offset(tensor_, n, q, m);
      if (dense_) {
        load_row(from + begin, 1, static_cast<std::int64_t>(end - begin), to);
      } else {
        for (std::size_t i = begin; i < end; ++i) to[i - begin] = convert<T>(from[offsets_[i]]);
      }
    });
  }
  template <class T>
  void load(std::int64_t n, std::int64_t q, std::int64_t m, T* to) const {
    load(n, q, m, 0, offsets_.size(), to);
  }

  /// Writes elements [begin, end) of a row of gradients; `tensor` must be a view of the same layout kind that may be
  /// written.
  template <class T>
  void store(std::int64_t n, std::int64_t q, std::int64_t m, std::size_t begin, std::size_t end, const T* from,
             const TensorView& tensor) const {
    with_float_type(tensor.dtype, [&]<class Stored>(Stored*) {
      Stored* to = static_cast<Stored*>(tensor.data) + head_offset(tensor, n, q, m);
      if (dense_) {
        store_row(from, static_cast<std::int64_t>(end - begin), to + begin, 1);
      } else {
        for (std::size_t i = begin; i < end; ++i) to[offsets_[i]] = static_cast<Stored>(from[i - begin]);
      }
    });
  }

  const ConstTensorView& tensor() const { return tensor_; }
  /// Whether the elements of a row follow each other in the tensor.
  bool dense() const { return dense_; }

  /// Where the row [n, q, m] starts.
  const void* address(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return static_cast<const char*>(tensor_.data) +
           head_offset(tensor_, n, q, m) * static_cast<std::int64_t>(size_of(tensor_.dtype));
  }

 private:
  ConstTensorView tensor_;
  std::vector<std::int64_t> offsets_;
  bool dense_ = true;
};

}  // namespace tmaops::ops::ms_deform_attn
