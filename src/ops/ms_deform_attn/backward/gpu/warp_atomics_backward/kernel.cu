// Version 1: one warp per item, its threads on the channels, and one atomic f32 addition per corner and channel into
// the value's gradient. Takes every problem: any strides, types, levels, points and sizes.
#include "ops/ms_deform_attn/backward/shared/value_sums.cuh"
#include "ops/ms_deform_attn/backward/shared/warp_per_item.cuh"

namespace tmaops::ops::ms_deform_attn_backward::warp_atomics_backward {

namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

template <class Value>
__global__ void __launch_bounds__(kBackwardThreads, kBlocksOfWarps) kernel(const __grid_constant__ BackwardCall call) {
  warp_per_item<Value, AtomicSums<Arithmetic<Value>>>(call);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.deterministic && problem.grad_value)
    return Support::no("adds in any order, deterministic sums are asked for");
  return supports_items(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return atomic_work<Values::up_to_f64>(
      kSite, problem, arguments, {}, [&]<class Value>(Work& work, const BackwardCall& call, Value*) {
        work.add(kernel<Value>,
                 one_group_each(call.inputs.items, kBackwardThreads, kWarpBits, arguments.dependent_launch), call);
      });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::warp_atomics_backward
