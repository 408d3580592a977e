// The types of a kernel that takes f64 values, too.
#pragma once

#include "ops/resample/shared/call.cuh"

namespace tmaops::ops::resample::gpu {

/// with_types() with values of f64, too.
template <class Fn>
void with_any_types(const Problem& problem, const Fn& fn) {
  if (problem.values != DType::f64) return with_types(problem, fn);
  double* const value = nullptr;
  if (problem.times == DType::f32)
    fn(static_cast<float*>(nullptr), value);
  else if (problem.times == DType::f64)
    fn(static_cast<double*>(nullptr), value);
  else
    fn(static_cast<std::int64_t*>(nullptr), value);
}

}  // namespace tmaops::ops::resample::gpu
