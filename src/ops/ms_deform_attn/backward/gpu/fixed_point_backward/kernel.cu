// Version 3: adds to warp_atomics_backward the same bits from run to run. The value's gradient is summed in 64-bit
// integers, where the order of additions does not matter. A first kernel finds the largest gradient and weight. Their
// product, times the most terms that a sum may have, is 2^60 units, so that a unit is far below the rounding of f32.
// Four channels per thread, as in vector_atomics_backward, gain nothing.
#include "ops/ms_deform_attn/backward/shared/value_sums.cuh"
#include "ops/ms_deform_attn/backward/shared/warp_per_item.cuh"

namespace tmaops::ops::ms_deform_attn_backward::fixed_point_backward {

namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// Sums in 64-bit integers, which do not depend on the order. Terms that are not finite go to the f32 sums, where
/// infinities and NaN add up to the same in any order.
struct FixedSums {
  const BackwardCall& call;
  double scale;
  __device__ __forceinline__ explicit FixedSums(const BackwardCall& of)
      : call(of), scale(of.fixed != nullptr ? scalbn(1.0, fixed_exponent(of)) : 0.0) {}  // not when unwanted
  __device__ __forceinline__ void add(const Item& item, std::int64_t s, std::int64_t d, float term) const {
    if (!(fabsf(term) <= 3.402823466e38f)) {
      AtomicSums<float>(call).add(item, s, d, term);
      return;
    }
    const std::int64_t at = ((item.n * call.length + s) * call.inputs.heads + item.m) * call.inputs.channels + d;
    atomicAdd(reinterpret_cast<unsigned long long*>(call.fixed + at),
              static_cast<unsigned long long>(__double2ll_rn(static_cast<double>(term) * scale)));
  }
};

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

template <class Value>
__global__ void __launch_bounds__(kBackwardThreads, kBlocksOfWarps) kernel(const __grid_constant__ BackwardCall call) {
  warp_per_item<Value, FixedSums>(call);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.forward.value_dtype == DType::f64) return Support::no("computes in f32, the value is f64");
  return supports_items(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return atomic_work(
      kSite, problem, arguments, {.fixed = true}, [&]<class Value>(Work& work, const BackwardCall& call, Value*) {
        if (call.fixed != nullptr)
          work.add(find_largest<Value>, rounds(call.inputs.items * device::kWarpThreads, problem.forward.device), call);
        work.add(kernel<Value>,
                 one_group_each(call.inputs.items, kBackwardThreads, kWarpBits, arguments.dependent_launch), call);
      });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::fixed_point_backward
