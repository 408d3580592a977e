// Functions of f16 and bf16 for which CUDA's headers have no host code. Part of prelude.hpp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

/// In f64 the product is exact, so one rounding remains, as in the hardware.
inline __half __hfma(__half a, __half b, __half c) {
  return __double2half(static_cast<double>(__half2float(a)) * __half2float(b) + __half2float(c));
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __double2bfloat16(static_cast<double>(__bfloat162float(a)) * __bfloat162float(b) + __bfloat162float(c));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
#define TMAOPS_FUNCTION_OF_16_BITS(name, Half, Pair, result) \
  inline Half h##name(Half value) {                          \
    const float x = static_cast<float>(value);               \
    return Half(static_cast<float>(result));                 \
  }                                                          \
  inline Pair h2##name(Pair pair) { return {h##name(pair.x), h##name(pair.y)}; }
#define TMAOPS_FUNCTION(name, result)                       \
  TMAOPS_FUNCTION_OF_16_BITS(name, __half, __half2, result) \
  TMAOPS_FUNCTION_OF_16_BITS(name, __nv_bfloat16, __nv_bfloat162, result)
TMAOPS_FUNCTION(floor, std::floor(x))
TMAOPS_FUNCTION(ceil, std::ceil(x))
TMAOPS_FUNCTION(trunc, std::trunc(x))
TMAOPS_FUNCTION(rint, std::nearbyint(x))
TMAOPS_FUNCTION(exp, std::exp(x))
TMAOPS_FUNCTION(exp2, std::exp2(x))
TMAOPS_FUNCTION(log, std::log(x))
TMAOPS_FUNCTION(log2, std::log2(x))
TMAOPS_FUNCTION(sin, std::sin(x))
TMAOPS_FUNCTION(cos, std::cos(x))
TMAOPS_FUNCTION(tanh, std::tanh(x))
TMAOPS_FUNCTION(sqrt, std::sqrt(x))
TMAOPS_FUNCTION(rsqrt, 1 / std::sqrt(x))
TMAOPS_FUNCTION(rcp, 1 / x)
#undef TMAOPS_FUNCTION
#undef TMAOPS_FUNCTION_OF_16_BITS
