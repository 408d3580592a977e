// From a dtype known at run time to CUDA's type. For .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

}  // namespace tmaops
