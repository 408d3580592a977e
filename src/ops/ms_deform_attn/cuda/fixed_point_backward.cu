// The same bits from run to run: as warp_atomics_backward, but the value's gradient is summed in 64-bit integers, where
// the order of additions does not matter. A first pass finds the largest gradient and weight, whose product, times the
// most terms a sum may have, sets the unit: 2^-60 of that, far below an f32's rounding. Four channels
// per thread, as in vector_atomics_backward, gained nothing; the rate of 64-bit additions is the suspect.
#include "ops/ms_deform_attn/cuda/backward.cuh"

namespace tmaops::ops::ms_deform_attn_backward::fixed_point_backward {

namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

template <class Value>
__global__ void __launch_bounds__(kBackwardThreads, kBlocksOfWarps) kernel(const __grid_constant__ BackwardCall call) {
  warp_per_item<Value, FixedSums>(call);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_items(problem); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_backward(problem, arguments, {.fixed = true});
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  launch_backward(kSite, problem, arguments, stream, [&](auto* value, const BackwardCall& call) {
    launch_kernel<kernel<std::remove_pointer_t<decltype(value)>>>(
        kSite, one_group_each(call.inputs.items, kBackwardThreads, kWarpBits, arguments.dependent_launch), stream,
        call);
  });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::fixed_point_backward
