// The value's gradient where kernels add to it atomically: the sums' memory, clearing them, and making the gradient
// from them.
#pragma once

#include "ops/ms_deform_attn/backward/shared/footprint.cuh"
#include "ops/ms_deform_attn/shared/level_table.cuh"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

/// The value's gradient from the sums: f32 or f64, plus the integers where there are any. A thread takes four channels
/// of a row at a time; `vectors`: by one load and one store, because rows of both are dense multiples of four.
template <class To, class Sum>
__global__ void __launch_bounds__(kBackwardThreads)
    finish_sums(const __grid_constant__ BackwardCall call, const __grid_constant__ ChannelRows to, const bool vectors) {
  const Call& in = call.inputs;
  const double quantum = call.fixed != nullptr ? scalbn(1.0, -fixed_exponent(call)) : 0.0;
  const std::int64_t pieces = (in.channels + kFour - 1) / kFour;
  const std::int64_t count = call.batch * call.length * in.heads * pieces;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBackwardThreads + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kBackwardThreads) {
    if constexpr (std::is_same_v<Sum, float>) {
      if (vectors) {
        const float4 four = __ldcs(static_cast<const float4*>(call.sums.data) + i);
        store_four(static_cast<To*>(const_cast<void*>(to.data)) + i * kFour, {four.x, four.y, four.z, four.w});
        continue;
      }
    }
    const std::int64_t row = i / pieces;
    const std::int64_t pixel = row / in.heads;
    const std::int64_t m = row - pixel * in.heads;
    const std::int64_t n = pixel / call.length;
    const std::int64_t s = pixel - n * call.length;
    const std::int64_t first = (i - row * pieces) * kFour;
    const Sum* sums = static_cast<const Sum*>(call.sums.data) + call.sums.at(n, s, m);
    To* made = static_cast<To*>(const_cast<void*>(to.data)) + to.at(n, s, m);
    for (std::int64_t d = first; d < min(first + kFour, in.channels); ++d) {
      Sum sum = sums[d * call.sums.channel];
      if (call.fixed != nullptr)
        sum += static_cast<Sum>(static_cast<double>(call.fixed[row * in.channels + d]) * quantum);
      made[d * to.channel] = device::narrow<To>(sum);
    }
  }
}

/// How a variant sums the value's gradient.
struct SumsWanted {
  bool fixed = false;    // deterministic, in 64-bit integers
  bool aligned = false;  // rows of f32 sums at multiples of 16 bytes, channels next to each other
};

/// Gives a call its sums, cleared. Scratch memory holds them where the gradient itself cannot.
inline void add_sums(Work& work, BackwardCall& call, const Problem& problem, const Arguments& arguments,
                     const SumsWanted& wanted) {
  const ms_deform_attn::Problem& forward = problem.forward;
  const std::int64_t count = forward.batch * forward.length * forward.heads * forward.channels;
  if (!problem.grad_value || count == 0) return;
  const ConstTensorView value = arguments.gradients.value;
  const DType sum_type = forward.value_dtype == DType::f64 ? DType::f64 : DType::f32;
  const bool holds_sums =
      value.dtype == sum_type && value.is_contiguous() && (!wanted.aligned || row_alignment(value) == 16);
  const std::size_t fixed_bytes = wanted.fixed ? static_cast<std::size_t>(count) * sizeof(long long) + 16 : 0;
  const std::size_t sum_bytes = static_cast<std::size_t>(count) * size_of(sum_type);
  const std::size_t scratch_bytes = fixed_bytes + (holds_sums ? 0 : sum_bytes);
  unsigned char* scratch = nullptr;
  if (scratch_bytes > 0) {
    scratch = work.allocate(scratch_bytes);
    work.add_memset(scratch, 0, scratch_bytes);
  }
  if (wanted.fixed) {
    call.largest = reinterpret_cast<unsigned*>(scratch);
    call.fixed = reinterpret_cast<long long*>(scratch + 16);
    call.count_bits = count_bits(forward);
  }
  if (!holds_sums) {
    const std::int64_t row = forward.heads * forward.channels;
    call.sums = {scratch + fixed_bytes, forward.length * row, row, forward.channels, 1};
    return;
  }
  call.sums = value_rows(value);
  work.add_memset(arguments.gradients.value.data, 0, sum_bytes);
}

/// What a variant takes as values: f64, too.
enum class Values { up_to_f32, up_to_f64 };

/// The work of a variant with atomic sums. add_kernels(work, call, value type) adds its own kernels, where there are
/// items.
template <Values values = Values::up_to_f32, class AddKernels>
Work atomic_work(const LaunchSite& site, const Problem& problem, const Arguments& arguments, const SumsWanted& wanted,
                 const AddKernels& add_kernels) {
  const ms_deform_attn::Problem& forward = problem.forward;
  Work work(site, forward.device, arguments.workspace);
  BackwardCall call = backward_call(problem, arguments);
  upload_levels(work, call.inputs, forward, arguments.value, arguments.sampling_locations, arguments.attention_weights);
  add_sums(work, call, problem, arguments, wanted);
  const auto add = [&]<class Value>(Value* type) { add_kernels(work, call, type); };
  if constexpr (values == Values::up_to_f64) {
    if (call.inputs.items > 0) with_any_value_type(forward.value_dtype, add);
  } else {
    if (call.inputs.items > 0) with_value_type(forward.value_dtype, add);
  }
  const ConstTensorView gradient = arguments.gradients.value;
  const bool holds_all = call.sums.data == gradient.data && call.fixed == nullptr;
  if (call.sums.data == nullptr || holds_all) return work;
  const LaunchShape shape = rounds((gradient.size() + kFour - 1) / kFour, forward.device);
  if constexpr (values == Values::up_to_f64)
    if (forward.value_dtype == DType::f64) {
      const auto finish = gradient.dtype == DType::f64 ? finish_sums<double, double> : finish_sums<float, double>;
      work.add(finish, shape, call, value_rows(gradient), false);
      return work;
    }
  const bool vectors = call.fixed == nullptr && gradient.is_contiguous() && row_alignment(gradient) >= 8 &&
                       forward.channels % kFour == 0 && gradient.dtype != DType::f32;
  with_value_type(gradient.dtype,
                  [&]<class To>(To*) { work.add(finish_sums<To, float>, shape, call, value_rows(gradient), vectors); });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
