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
