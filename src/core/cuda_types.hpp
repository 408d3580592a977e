// From a dtype known at run time to CUDA's type. For .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "core/fail.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

#ifndef TMAOPS_TYPES
#define TMAOPS_TYPES "f64,f32,f16,bf16"
#endif

/// Calls fn with a null pointer of a type, when the kernels for values of that type are in this build:
/// -DTMAOPS_TYPES=f16 leaves out all others. Throws Error variant_refuses when they are not.
template <class Value, class Fn>
void with_built_type([[maybe_unused]] const Fn& fn) {
  constexpr std::string_view kName = std::is_same_v<Value, double>   ? ",f64,"
                                     : std::is_same_v<Value, float>  ? ",f32,"
                                     : std::is_same_v<Value, __half> ? ",f16,"
                                                                     : ",bf16,";
  if constexpr (std::string_view("," TMAOPS_TYPES ",").find(kName) != std::string_view::npos)
    fn(static_cast<Value*>(nullptr));
  else
    fail(ErrorCode::variant_refuses, "TMAOPS_TYPES", "a build with GPU kernels for " TMAOPS_TYPES " alone",
         "one with kernels for " + std::string(kName.substr(1, kName.size() - 2)));
}

/// Calls fn with a null pointer of a value's type: f32, f16, and bf16 for every other dtype.
template <class Fn>
void with_value_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f32)
    with_built_type<float>(fn);
  else if (dtype == DType::f16)
    with_built_type<__half>(fn);
  else
    with_built_type<__nv_bfloat16>(fn);
}

/// The same, and f64.
template <class Fn>
void with_any_value_type(DType dtype, const Fn& fn) {
  if (dtype == DType::f64)
    with_built_type<double>(fn);
  else
    with_value_type(dtype, fn);
}

/// What values are computed in: f64 for f64, else f32.
template <class Value>
using Arithmetic = std::conditional_t<std::is_same_v<Value, double>, double, float>;

}  // namespace tmaops
