// Version 1: one thread per output element, which works out every sample for itself, as published implementations do.
// Takes every problem: any strides, types, levels, points and sizes.
#include "ops/ms_deform_attn/forward/shared/fused_call.cuh"
#include "ops/ms_deform_attn/shared/level_table.cuh"

namespace tmaops::ops::ms_deform_attn::channel_per_thread {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;
/// 64 registers, for fused calls 80, for f64 more: with fewer it spills.
template <class Value, class AnyCall>
constexpr int kBlocksPerMultiprocessor = sizeof(Value) == 8              ? 2
                                         : std::is_same_v<AnyCall, Call> ? 4
                                                                         : 3;

template <class Value, class Point, class AnyCall>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<Value, AnyCall>)
    kernel(const __grid_constant__ AnyCall call) {
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
  const auto sum = sum_channel<Value, Point>(call, item, d);
  void* output = const_cast<void*>(call.output.data);
  const std::int64_t at = call.output.at(item.n, item.q, item.m) + d * call.output.channel;
  if (sizeof(Value) == 2 && call.f32_output)
    static_cast<float*>(output)[at] = static_cast<float>(sum);
  else
    static_cast<Value*>(output)[at] = device::narrow<Value>(sum);
}

/// Adds the levels' table and the kernel.
template <class Value, class Point, class AnyCall>
void add_kernel(Work& work, const Problem& problem, const Arguments& arguments, AnyCall call) {
  upload_levels(work, call, problem, arguments.value, arguments.sampling_locations, arguments.attention_weights);
  const std::int64_t blocks = (call.items * call.channels + kThreads - 1) / kThreads;
  work.add(kernel<Value, Point, AnyCall>,
           {.grid = static_cast<unsigned>(blocks), .block = kThreads, .dependent = arguments.dependent_launch}, call);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.batch * problem.queries >
      (std::int64_t{INT32_MAX} * kThreads - kThreads) / std::max<std::int64_t>(problem.heads * problem.channels, 1))
    return Support::no("needs at most 2^39 output elements");
  return supports_levels(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  // One kernel for all types of points: rarely the best choice.
  if (problem.fused() || problem.levels_on_device || problem.value_dtype == DType::f64)
    with_any_value_type(problem.value_dtype, [&]<class Value>(Value*) {
      add_kernel<Value, AnyType>(work, problem, arguments, fused_call(problem, arguments));
    });
  else
    with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
      add_kernel<Value, Point>(work, problem, arguments, forward_call(problem, arguments));
    });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::channel_per_thread
