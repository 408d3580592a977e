// Plain loops that the compiler vectorises: the C library's exp and erf are much slower.
#include "ops/gemm/shared/host_activation.hpp"

#include <bit>

#include "core/clones.hpp"

namespace tmaops::ops::gemm {
namespace {

#define TMAOPS_INLINE inline __attribute__((always_inline))

/// e^x. x = n ln 2 + r with |r| <= ln 2 / 2; e^r = 1 + r + r^2 p(r), p a Chebyshev fit (5e-9 relative); 2^n in two
/// factors, so that results down to the subnormals and overflow come out right.
TMAOPS_INLINE float exponential(float x) {
  x = x < -105.0F ? -105.0F : x;         // e^-105 rounds to 0; written so that NaN passes
  x = x > 89.0F ? 89.0F : x;             // e^89 overflows
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the integer in the low mantissa bits
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 = 0.693359375 - 2.1219444e-4
  float p = 0.00139487768F;
  p = p * r + 0.00837060157F;
  p = p * r + 0.0416662283F;
  p = p * r + 0.166665033F;
  p = p * r + 0.5F;
  const float mantissa = (p * r) * r + r + 1.0F;
  const std::int32_t exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted)) - 0x4b400000;
  const std::int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
  const float second = std::bit_cast<float>(static_cast<std::uint32_t>(exponent - half + 127) << 23);
  return mantissa * first * second;
}

/// The normal distribution function times x: x/2 erfc(-x / sqrt 2). For z = |x| / sqrt 2 and t = 1 / (1 + z / 2),
/// erfc(z) = exp(-z^2) t h(t), h a Chebyshev fit over (0, 1] (5e-7 relative in f32); no cancellation in either tail.
TMAOPS_INLINE float gelu(float x) {
  const float z = (x < 0.0F ? -x : x) * 0.707106781F;
  const float t = 1.0F / (1.0F + 0.5F * z);
  float h = -0.0256910653F;
  h = h * t + 0.0653406307F;
  h = h * t + 0.0288608894F;
  h = h * t - 0.196373358F;
  h = h * t + 0.0780235231F;
  h = h * t + 0.0588217601F;
  h = h * t + 0.180293798F;
  h = h * t + 0.246525228F;
  h = h * t + 0.282103688F;
  h = h * t + 0.282094747F;
  const float tail = 0.5F * exponential(-z * z) * (t * h);
  return x * (x < 0.0F ? tail : 1.0F - tail);
}

#undef TMAOPS_INLINE

TMAOPS_CLONES void relu_loop(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < 0.0F ? 0.0F : x[i];
}

TMAOPS_CLONES void gelu_loop(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = gelu(x[i]);
}

TMAOPS_CLONES void silu_loop(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] / (1.0F + exponential(-x[i]));
}

}  // namespace

void activate(Activation activation, float* x, std::int64_t count) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return relu_loop(x, count);
    case Activation::gelu:
      return gelu_loop(x, count);
    case Activation::silu:
      return silu_loop(x, count);
  }
}

}  // namespace tmaops::ops::gemm
