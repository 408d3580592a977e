// Elements of any type as double.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/visit_dtype.hpp"

namespace tmaops::bench {

inline double load(DType dtype, const void* data, std::int64_t index) {
  return visit_dtype(dtype, [&](auto* type) {
    return static_cast<double>(static_cast<const std::remove_pointer_t<decltype(type)>*>(data)[index]);
  });
}

inline void store(DType dtype, void* data, std::int64_t index, double value) {
  visit_dtype(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    static_cast<T*>(data)[index] = static_cast<T>(value);
  });
}

}  // namespace tmaops::bench
