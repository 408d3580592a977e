// Elements of any type as double.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tmaops/dtype.hpp"

namespace tmaops::bench {

/// Calls fn with a null pointer of the element type: visit(dtype, [](auto* type) { using T = ...; }).
template <class Fn>
decltype(auto) visit(DType dtype, const Fn& fn) {
  switch (dtype) {
    case DType::f64:
      return fn(static_cast<double*>(nullptr));
    case DType::f32:
      return fn(static_cast<float*>(nullptr));
    case DType::f16:
      return fn(static_cast<float16*>(nullptr));
    case DType::bf16:
      return fn(static_cast<bfloat16*>(nullptr));
    case DType::i64:
      return fn(static_cast<std::int64_t*>(nullptr));
    case DType::i32:
      return fn(static_cast<std::int32_t*>(nullptr));
    case DType::u8:
      break;
  }
  return fn(static_cast<std::uint8_t*>(nullptr));
}

inline double load(DType dtype, const void* data, std::int64_t index) {
  return visit(dtype, [&](auto* type) {
    return static_cast<double>(static_cast<const std::remove_pointer_t<decltype(type)>*>(data)[index]);
  });
}

inline void store(DType dtype, void* data, std::int64_t index, double value) {
  visit(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    static_cast<T*>(data)[index] = static_cast<T>(value);
  });
}

}  // namespace tmaops::bench
