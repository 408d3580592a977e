// From types and numbers known at run time to those of a kernel.
#pragma once

#include <type_traits>

#include "core/cuda_types.hpp"
#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// A type known at run time only, for locations and weights.
struct AnyType {};

/// Calls fn(value type, point type) with null pointers. The point type is that of locations and weights where these are
/// equal and of at most 32 bits, else AnyType.
template <class Fn>
void with_types(const Problem& problem, const Fn& fn) {
  with_value_type(problem.value_dtype, [&]<class Value>(Value* value) {
    if (problem.location_dtype != problem.weight_dtype || problem.location_dtype == DType::f64)
      fn(value, static_cast<AnyType*>(nullptr));
    else
      with_value_type(problem.location_dtype, [&]<class Point>(Point* point) { fn(value, point); });
  });
}

template <int number>
using Constant = std::integral_constant<int, number>;

/// Calls fn(Constant<number>()) for a number from first to last; does nothing for any other.
template <int first, int last, class Fn>
void with_constant(int number, const Fn& fn) {
  if (number == first) return fn(Constant<first>());
  if constexpr (first < last) with_constant<first + 1, last>(number, fn);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
