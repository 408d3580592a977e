// Approximations that are one instruction of the special function unit (PTX ISA "rcp", "rsqrt", "ex2"). A
// multiprocessor starts 16 of them per cycle. Subnormal arguments count as 0, and subnormal results become 0.
#pragma once

namespace tmaops::device {

/// 1 / x, relative error 2^-23; infinite for |x| < 2^-126, 0 for |x| > 2^126.
__device__ __forceinline__ float reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / sqrt(x), relative error 2^-22.9; infinite for 0 <= x < 2^-126.
__device__ __forceinline__ float reciprocal_root(float x) {
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 2^x, relative error 2^-22.
__device__ __forceinline__ float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace tmaops::device
