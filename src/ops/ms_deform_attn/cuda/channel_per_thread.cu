// Version 1, the algorithm everyone has used since 2020: one thread per output element, which works out every sample
// for itself. Takes every problem: any strides, types, levels, points and sizes.
#include "device/warp.cuh"
#include "ops/ms_deform_attn/cuda/fused_call.cuh"

namespace tmaops::ops::ms_deform_attn::channel_per_thread {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 4;  // 64 registers: enc/uniform 914 us, with 48 986

template <class Value, class Point, class AnyCall>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) kernel(const __grid_constant__ AnyCall call) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= call.items * call.channels) return;
  std::int64_t number = 0;
  if (call.items * call.channels <= INT32_MAX)
    number = static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(call.channels);
  else
    number = index / call.channels;
  const std::int64_t d = index - number * call.channels;
  const Item item = item_at(call, number);
  const float sum = sum_channel<Value, Point>(call, item, d);
  static_cast<Value*>(const_cast<void*>(
      call.output.data))[call.output.at(item.n, item.q, item.m) + d * call.output.channel] = narrow<Value>(sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.batch * problem.queries >
      (std::int64_t{INT32_MAX} * kThreads - kThreads) / std::max<std::int64_t>(problem.heads * problem.channels, 1))
    return Support::no("needs at most 2^39 output elements");
  return supports_levels(problem);
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  if (problem.fused()) return prepare_fused(problem, arguments);
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = problem.fused() ? fused_call(arguments) : prepared_call(arguments);
  const std::int64_t blocks = (call.items * call.channels + kThreads - 1) / kThreads;
  if (blocks == 0) return;
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{
      .grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(kThreads), .dependent = arguments.dependent_launch};
  if (problem.fused()) {  // rarely the best choice: one kernel for all types of points
    with_value_type(problem.value_dtype, [&](auto* value) {
      using Value = std::remove_pointer_t<decltype(value)>;
      launch_kernel<kernel<Value, AnyType, FusedCall>>(kSite, config, stream, fused_call(arguments));
    });
    return;
  }
  with_types(problem, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    launch_kernel<kernel<Value, Point, Call>>(kSite, config, stream, call);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::channel_per_thread
