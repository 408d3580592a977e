// Sums that are not finite, made again by the definition and kept in registers.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// The channels d, d + 1, ... of an item by the definition. Rare.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void sum_exactly(const AnyCall& call, const Item& item, int d,
                                            float (&sum)[device::kPerVector<Value>]) {
#pragma unroll 1
  for (int i = 0; i < device::kPerVector<Value>; ++i) {
    const float exact = sum_channel<Value, Point>(call, item, d + i);
#pragma unroll
    for (int k = 0; k < device::kPerVector<Value>; ++k)
      if (k == i) sum[k] = exact;
  }
}

/// Stores 16 bytes of channels.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void store_sums(const AnyCall& call, const Item& item, int d,
                                           float (&sum)[device::kPerVector<Value>]) {
  if (!all_finite(sum)) sum_exactly<Value, Point>(call, item, d, sum);
  device::store_16_streaming(output_channel<Value>(call, item, d), device::pack_16<Value>(sum));
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
