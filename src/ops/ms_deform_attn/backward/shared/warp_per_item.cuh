// One warp per item, its threads on the channels: what takes every backward problem.
#pragma once

#include "ops/ms_deform_attn/backward/shared/footprint.cuh"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

/// Sums in f32 or f64 by atomic additions: in any order.
template <class T>
struct AtomicSums {
  const BackwardCall& call;
  __device__ __forceinline__ explicit AtomicSums(const BackwardCall& of) : call(of) {}
  __device__ __forceinline__ void add(const Item& item, std::int64_t s, std::int64_t d, T term) const {
    T* sums = static_cast<T*>(const_cast<void*>(call.sums.data));
    atomicAdd(sums + call.sums.at(item.n, s, item.m) + d * call.sums.channel, term);
  }
};

/// Per multiprocessor, at least, of a kernel that runs warp_per_item.
inline constexpr int kBlocksOfWarps = 2;
inline constexpr int kWarpBits = 5;  // log2 of the threads of an item

/// Largest finite magnitudes of grad_output and of the attention weights.
template <class Value>
__global__ void __launch_bounds__(kBackwardThreads) find_largest(const __grid_constant__ BackwardCall call) {
  const Call& in = call.inputs;
  float largest[2] = {0, 0};
  const auto see = [](float& most, float one) {
    if (fabsf(one) <= 3.402823466e38f) most = fmaxf(most, fabsf(one));
  };
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * kBackwardWarps;
  const int lane = device::lane_index();
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kBackwardWarps + device::warp_index();
       number < in.items; number += warps) {
    const Item item = item_at(in, number);
    const std::int64_t gradient_row = in.output.at(item.n, item.q, item.m);
    for (std::int64_t d = lane; d < in.channels; d += device::kWarpThreads)
      see(largest[0], read_gradient<Value>(in.output.data, call.grad_output, gradient_row + d * in.output.channel));
    const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
    for (int l = 0; l < in.level_count; ++l) {
      const DeviceLevel level = call.level(l);
      for (std::int64_t p = lane; p < level.points; p += device::kWarpThreads)
        see(largest[1], read_point<AnyType>(in.weights, weight_row + level.weight_at + p * in.weights.point));
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned most = __reduce_max_sync(0xffffffffu, __float_as_uint(largest[i]));
    if (lane == 0) atomicMax(call.largest + i, most);
  }
}

/// One warp per item, its threads on the channels; any strides and types. `call` is a parameter of the kernel.
template <class Value, class Sums>
__device__ __forceinline__ void warp_per_item(const BackwardCall& call) {
  using T = Arithmetic<Value>;
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& in = call.inputs;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kBackwardWarps + device::warp_index();
  if (number >= in.items) return;
  const int lane = device::lane_index();
  const Item item = item_at(in, number);
  const Sums sums(call);
  const Value* value = static_cast<const Value*>(in.value.data) + in.value.at(item.n, 0, item.m);
  const std::int64_t gradient_row = in.output.at(item.n, item.q, item.m);
  const std::int64_t location_row = in.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
  for (int l = 0; l < in.level_count; ++l) {
    const DeviceLevel level = call.level(l);
    for (std::int64_t p = 0; p < level.points; ++p) {
      const std::int64_t at = location_row + level.location_at + p * in.locations.point;
      const T weight = read_point<AnyType, T>(in.weights, weight_row + level.weight_at + p * in.weights.point);
      FootprintOf<T> where;
      if (level.height != 0)
        where = footprint(read_point<AnyType, T>(in.locations, at),
                          read_point<AnyType, T>(in.locations, at + in.locations.axis), level, in.nearest);
      T c[4] = {0, 0, 0, 0};
      for (std::int64_t d = lane; d < in.channels; d += device::kWarpThreads) {
        const T gradient = read_gradient<Value>(in.output.data, call.grad_output, gradient_row + d * in.output.channel);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!where.has(k)) continue;
          const std::int64_t pixel = static_cast<std::int64_t>(where.row + k / 2) * level.width + where.column + k % 2;
          c[k] = fma(gradient,
                     device::widen(__ldg(value + level.value_at + pixel * in.value.row + d * in.value.channel)), c[k]);
          if (call.sums.data != nullptr)
            sums.add(item, level.first_pixel + pixel, d, weight * where.bilinear(k) * gradient);
        }
      }
      PointSumsOf<T> made = point_sums(where, c);
      made.weight = device::group_sum(made.weight);
      made.x = device::group_sum(made.x);
      made.y = device::group_sum(made.y);
      if (where.inside == 0) made = {};
      if (lane == 0) write_point(call, item, l, p, level, where.inside != 0 ? weight : T(0), made);
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
