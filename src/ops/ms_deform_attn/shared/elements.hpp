// Single elements of the operator's tensors, by index: what the references and the plain loops read and write.
#pragma once

#include <cstdint>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Calls fn with a null pointer of an element type of at most 32 bits: with_short_type(t, []<class T>(T*) { ... }).
template <class Fn>
[[gnu::always_inline]] inline decltype(auto) with_short_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f16) return fn(static_cast<float16*>(nullptr));
  if (dtype == DType::bf16) return fn(static_cast<bfloat16*>(nullptr));
  return fn(static_cast<float*>(nullptr));
}
/// The same, and f64.
template <class Fn>
[[gnu::always_inline]] inline decltype(auto) with_float_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f64) return fn(static_cast<double*>(nullptr));
  return with_short_type(dtype, fn);
}

inline double read(const ConstTensorView& tensor, std::int64_t offset) {
  return with_float_type(tensor.dtype,
                         [&]<class T>(T*) { return static_cast<double>(static_cast<const T*>(tensor.data)[offset]); });
}

inline void write(const TensorView& tensor, std::int64_t offset, double value) {
  with_float_type(tensor.dtype, [&]<class T>(T*) { static_cast<T*>(tensor.data)[offset] = static_cast<T>(value); });
}

/// Offset of value[n, s, m, 0].
inline std::int64_t value_offset(const Layout& value, std::int64_t n, std::int64_t s, std::int64_t m) {
  return n * value.strides[0] + s * value.strides[1] + m * value.strides[2];
}

/// Offset of the first channel of head m in (N, Lq, M * D).
inline std::int64_t output_offset(const Problem& problem, const Layout& output, std::int64_t n, std::int64_t q,
                                  std::int64_t m) {
  return n * output.strides[0] + q * output.strides[1] + m * problem.channels * output.strides[2];
}

/// Offset of point p of a level behind [n, q, m], the same for locations (whose last dimension is x, y) and weights.
inline std::int64_t point_offset(const Problem& problem, const Level& level, std::int64_t p, const Layout& layout) {
  if (problem.ragged) return (level.first_point + p) * layout.strides[3];
  return (&level - problem.levels.data()) * layout.strides[3] + p * layout.strides[4];
}

/// Offset of [n, q, m] in locations or weights.
inline std::int64_t head_offset(const Layout& layout, std::int64_t n, std::int64_t q, std::int64_t m) {
  return n * layout.strides[0] + q * layout.strides[1] + m * layout.strides[2];
}

/// Step from x to y in the locations.
inline std::int64_t xy_stride(const Layout& locations) {
  return locations.strides[static_cast<std::size_t>(locations.rank - 1)];
}

/// Whether the padding mask says that a pixel counts as 0.
inline bool masked(const Problem& problem, const Arguments& arguments, std::int64_t n, std::int64_t pixel) {
  const ConstTensorView& mask = arguments.padding_mask;
  return problem.masked &&
         static_cast<const std::uint8_t*>(mask.data)[n * mask.strides[0] + pixel * mask.strides[1]] != 0;
}

/// A coordinate as the operator sees it: f32 unless the value is f64.
inline double read_coordinate(const Problem& problem, const ConstTensorView& locations, std::int64_t offset) {
  const double coordinate = read(locations, offset);
  return problem.value_dtype == DType::f64 ? coordinate : static_cast<double>(static_cast<float>(coordinate));
}

}  // namespace tmaops::ops::ms_deform_attn
