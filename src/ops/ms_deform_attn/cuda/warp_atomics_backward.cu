// One warp per item, its threads on the channels, and one atomic f32 addition per corner and channel into the value's
// gradient. Takes every problem: any strides, types, levels, points and sizes.
#include "ops/ms_deform_attn/cuda/backward.cuh"

namespace tmaops::ops::ms_deform_attn_backward::warp_atomics_backward {

namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

template <class Value>
__global__ void __launch_bounds__(kBackwardThreads, kBlocksOfWarps) kernel(const __grid_constant__ BackwardCall call) {
  warp_per_item<Value, FloatSums>(call);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.deterministic && problem.grad_value)
    return Support::no("adds in any order, deterministic sums are asked for");
  return supports_items(problem);
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_backward(problem, arguments, {});
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  launch_backward(kSite, problem, arguments, stream, [&](auto* value, const BackwardCall& call) {
    launch_kernel<kernel<std::remove_pointer_t<decltype(value)>>>(
        kSite, one_group_each(call.inputs.items, kBackwardThreads, kWarpBits, arguments.dependent_launch), stream,
        call);
  });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::warp_atomics_backward
