// From an element type known at run time to the C++ type.
#pragma once

#include <cstdint>

#include "tmaops/dtype.hpp"

namespace tmaops {

/// Calls fn with a null pointer of the element type: visit_dtype(dtype, [](auto* type) { using T = ...; }).
template <class Fn>
decltype(auto) visit_dtype(DType dtype, const Fn& fn) {
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

}  // namespace tmaops
