// Stores sums, those that are not finite made again by the definition.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Stores 16 bytes of channels.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void store_sums(const AnyCall& call, const Item& item, int d,
                                           float (&sum)[device::kPerVector<Value>]) {
  if (!all_finite(sum)) sum_exactly<Value, Point>(call, item, d, sum);
  device::store_16_streaming(output_channel<Value>(call, item, d), device::pack_16<Value>(sum));
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
