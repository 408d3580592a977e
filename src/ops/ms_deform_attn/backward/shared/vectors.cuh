// Gradients of points whose threads have 16 bytes of the channels each.
#pragma once

#include "ops/ms_deform_attn/backward/shared/footprint.cuh"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

/// Sums of `lane_bits` neighbouring threads for 2^batch_bits samples: in thread t those of sample t mod 2^batch_bits.
/// Every round halves the samples a thread holds, so that n samples cost about 2 n shuffles instead of n log n.
template <int batch_bits, int lane_bits, int count>
__device__ __forceinline__ void sum_transposed(float (&sums)[1 << batch_bits][count], int part, float (&own)[count]) {
#pragma unroll
  for (int bit = batch_bits - 1; bit >= 0; --bit)
#pragma unroll
    for (int i = 0; i < 1 << bit; ++i)
#pragma unroll
      for (int k = 0; k < count; ++k) {
        const bool upper = (part >> bit & 1) != 0;
        const float kept = upper ? sums[i + (1 << bit)][k] : sums[i][k];
        const float sent = upper ? sums[i][k] : sums[i + (1 << bit)][k];
        sums[i][k] = kept + __shfl_xor_sync(0xffffffffu, sent, 1 << bit);
      }
#pragma unroll
  for (int k = 0; k < count; ++k) {
    own[k] = sums[0][k];
#pragma unroll
    for (int bit = batch_bits; bit < lane_bits; ++bit) own[k] += __shfl_xor_sync(0xffffffffu, own[k], 1 << bit);
  }
}

/// Sum of the products of 16 bytes with f32.
template <class Value>
__device__ __forceinline__ float dot_vector(const float (&with)[device::kPerVector<Value>], const uint4& vector) {
  float values[device::kPerVector<Value>] = {};
  device::add_scaled_16<Value>(values, vector, 1.0f);
  float sum = with[0] * values[0];
#pragma unroll
  for (int i = 1; i < device::kPerVector<Value>; ++i) sum = fmaf(with[i], values[i], sum);
  return sum;
}

/// The gradient of 16 bytes of an item's channels, from channel d on.
template <class Value>
__device__ __forceinline__ void load_gradient(const BackwardCall& call, const Item& item, int d,
                                              float (&to)[device::kPerVector<Value>]) {
  const std::int64_t at = call.inputs.output.at(item.n, item.q, item.m) + d;
#pragma unroll
  for (int i = 0; i < device::kPerVector<Value>; i += kFour) {
    auto& four = reinterpret_cast<float(&)[kFour]>(to[i]);
    if (call.grad_output == DType::f32)
      load_four(static_cast<const float*>(call.inputs.output.data) + at + i, four);
    else
      load_four(static_cast<const Value*>(call.inputs.output.data) + at + i, four);
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
