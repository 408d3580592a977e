// From a dtype known at run time to CUDA's type. For .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "tmaops/tensor.hpp"

namespace tmaops {

/// Calls fn with a null pointer of a value's type: f32, f16, and bf16 for every other dtype.
template <class Fn>
void with_value_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f32)
    fn(static_cast<float*>(nullptr));
  else if (dtype == DType::f16)
    fn(static_cast<__half*>(nullptr));
  else
    fn(static_cast<__nv_bfloat16*>(nullptr));
}

/// The same, and f64.
template <class Fn>
void with_any_value_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f64)
    fn(static_cast<double*>(nullptr));
  else
    with_value_type(dtype, fn);
}

/// What values are computed in: f64 for f64, else f32.
template <class Value>
using Arithmetic = std::conditional_t<std::is_same_v<Value, double>, double, float>;

}  // namespace tmaops
