// What the backward kernels share: the call, the sums of the value's gradient and where they end, launching.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/checks.hpp"
#include "device/warp.cuh"
#include "ops/ms_deform_attn/cuda/elements.cuh"
#include "ops/ms_deform_attn/problem_backward.hpp"

namespace tmaops::ops::ms_deform_attn_backward::cuda {

using namespace ms_deform_attn::cuda;  // NOLINT(google-build-using-namespace): the forward kernels' parts

inline constexpr int kBackwardThreads = 256;
inline constexpr int kBackwardWarps = kBackwardThreads / device::kWarpThreads;

/// Offset of point p of level l behind [n, q, m].
struct PointOffsets {
  std::int64_t level = 0;
  std::int64_t point = 0;
  bool ragged = false;
  PointOffsets() = default;
  PointOffsets(const ms_deform_attn::Problem& problem, const Layout& layout)
      : level(layout.strides[3]), point(layout.strides[problem.ragged ? 3 : 4]), ragged(problem.ragged) {}
  __device__ __forceinline__ std::int64_t at(int l, std::int64_t p, const DeviceLevel& level_of) const {
    return ragged ? (level_of.last_point - level_of.points + p) * point : l * level + p * point;
  }
};

/// Passed to kernels by value.
struct BackwardCall {
  Call inputs{};  // `output` is grad_output
  DType grad_output = DType::f32;
  ChannelRows sums{};     // f32: the value's gradient, or scratch for it; null when not wanted
  PointRows locations{};  // gradients; null data when not wanted
  PointRows weights{};
  PointOffsets location_offsets{};
  PointOffsets weight_offsets{};
  // Deterministic sums: 64-bit integers (N, S, M, D), dense, and the two largest magnitudes they are scaled by.
  long long* fixed = nullptr;
  unsigned* largest = nullptr;  // of grad_output and of attention_weights, the bits of an f32
  int count_bits = 0;           // log2 of the most terms of one sum, so that it stays below 2^60 units
  std::int64_t length = 0;
  std::int64_t batch = 0;
};

/// What prepare() makes and launch() reads.
struct Prepared {
  BackwardCall call{};
  std::shared_ptr<const void> table{};
  std::shared_ptr<void> scratch{};
  std::size_t clear_bytes = 0;         // of scratch, from its start
  std::size_t clear_output_bytes = 0;  // of a dense f32 gradient, which holds the sums itself
  ConstTensorView finished{};          // the gradient that is made from the sums; not given when there is none
};

template <class T>
__device__ __forceinline__ float read_any(const void* data, DType dtype, std::int64_t at) {
  if constexpr (!std::is_same_v<T, float>)
    if (dtype != DType::f32) return widen(__ldg(static_cast<const T*>(data) + at));
  return __ldg(static_cast<const float*>(data) + at);
}

__device__ __forceinline__ void write_any(const PointRows& to, std::int64_t at, float value) {
  void* data = const_cast<void*>(to.data);
  if (to.dtype == DType::f32)
    static_cast<float*>(data)[at] = value;
  else if (to.dtype == DType::f16)
    static_cast<__half*>(data)[at] = narrow<__half>(value);
  else if (to.dtype == DType::bf16)
    static_cast<__nv_bfloat16*>(data)[at] = narrow<__nv_bfloat16>(value);
  else
    static_cast<double*>(data)[at] = value;
}

/// The power of two that the terms of deterministic sums are multiplied by, so that no sum leaves 62 bits: a term is at
/// most the largest gradient times the largest weight.
__device__ __forceinline__ int fixed_exponent(const BackwardCall& call) {
  const float gradient = __uint_as_float(call.largest[0]);
  const float weight = __uint_as_float(call.largest[1]);
  if (gradient == 0.0f || weight == 0.0f) return 0;
  return 60 - call.count_bits - (ilogbf(gradient) + ilogbf(weight) + 2);
}

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
      see(largest[0], read_any<Value>(in.output.data, call.grad_output, gradient_row + d * in.output.channel));
    const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
    for (int l = 0; l < in.level_count; ++l) {
      const DeviceLevel level = in.level(l);
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

/// The value's gradient from the sums: f32, plus the integers where there are any.
template <class To>
__global__ void __launch_bounds__(kBackwardThreads)
    finish_sums(const __grid_constant__ BackwardCall call, const __grid_constant__ ChannelRows to) {
  const Call& in = call.inputs;
  const double quantum = call.fixed != nullptr ? scalbn(1.0, -fixed_exponent(call)) : 0.0;
  const std::int64_t count = call.batch * call.length * in.heads * in.channels;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBackwardThreads + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kBackwardThreads) {
    const std::int64_t pixel = i / (in.heads * in.channels);
    const std::int64_t rest = i - pixel * (in.heads * in.channels);
    const std::int64_t n = pixel / call.length;
    const std::int64_t m = rest / in.channels;
    const std::int64_t s = pixel - n * call.length;
    const std::int64_t d = rest - m * in.channels;
    float sum = static_cast<const float*>(call.sums.data)[call.sums.at(n, s, m) + d * call.sums.channel];
    if (call.fixed != nullptr) sum += static_cast<float>(static_cast<double>(call.fixed[i]) * quantum);
    static_cast<To*>(const_cast<void*>(to.data))[to.at(n, s, m) + d * to.channel] = narrow<To>(sum);
  }
}

/// Writes 0 to a gradient with gaps.
template <class Sum>
__global__ void __launch_bounds__(kBackwardThreads) clear_sums(const __grid_constant__ BackwardCall call) {
  const Call& in = call.inputs;
  const std::int64_t rows = call.batch * call.length * in.heads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBackwardThreads + threadIdx.x; i < rows;
       i += static_cast<std::int64_t>(gridDim.x) * kBackwardThreads) {
    const std::int64_t pixel = i / in.heads;
    const std::int64_t n = pixel / call.length;
    Sum* row = static_cast<Sum*>(const_cast<void*>(call.sums.data)) +
               call.sums.at(n, pixel - n * call.length, i - pixel * in.heads);
    for (std::int64_t d = 0; d < in.channels; ++d) row[d * call.sums.channel] = 0;
  }
}

/// How a variant sums the value's gradient.
struct SumsWanted {
  bool fixed = false;    // deterministic, in 64-bit integers
  bool aligned = false;  // rows of f32 sums at multiples of 16 bytes, channels next to each other
};

/// The parts of a call that do not depend on how the value's gradient is summed.
inline Prepared prepare_inputs_and_points(const Problem& problem, const Arguments& arguments) {
  const ms_deform_attn::Problem& forward = problem.forward;
  Prepared made;
  ms_deform_attn::cuda::Prepared inputs =
      prepare_inputs(forward, arguments.value, arguments.sampling_locations, arguments.attention_weights);
  made.table = inputs.table;
  BackwardCall& call = made.call;
  call.inputs = inputs.call;
  call.inputs.output = query_rows(forward, arguments.grad_output);
  call.grad_output = problem.grad_output_dtype;
  call.length = forward.length;
  call.batch = forward.batch;
  const MsDeformAttnGradients& gradients = arguments.gradients;
  if (problem.grad_sampling_locations) {
    call.locations = point_rows(forward, gradients.sampling_locations, true);
    call.location_offsets = PointOffsets(forward, gradients.sampling_locations);
  }
  if (problem.grad_attention_weights) {
    call.weights = point_rows(forward, gradients.attention_weights, false);
    call.weight_offsets = PointOffsets(forward, gradients.attention_weights);
  }
  return made;
}

/// log2, rounded up, of the most terms that a sum can have: a point adds to a pixel once.
inline int count_bits(const ms_deform_attn::Problem& problem) {
  std::int64_t most = 1;
  for (const ms_deform_attn::Level& level : problem.levels) most = std::max(most, level.points);
  int bits = 0;
  for (std::int64_t terms = most * problem.queries; terms > 0; terms /= 2) ++bits;
  return bits;
}

/// prepare() of the variants with atomic sums: allocates scratch memory where the gradient itself cannot hold them.
inline std::shared_ptr<const void> prepare_backward(const Problem& problem, const Arguments& arguments,
                                                    const SumsWanted& wanted) {
  const ms_deform_attn::Problem& forward = problem.forward;
  auto made = std::make_shared<Prepared>(prepare_inputs_and_points(problem, arguments));
  BackwardCall& call = made->call;
  const std::int64_t count = forward.batch * forward.length * forward.heads * forward.channels;
  if (!problem.grad_value || count == 0) return made;

  const ConstTensorView value = arguments.gradients.value;
  const bool holds_sums =
      value.dtype == DType::f32 && (!wanted.aligned || (row_alignment(value) == 16 && value.strides[3] == 1));
  const std::size_t fixed_bytes = wanted.fixed ? static_cast<std::size_t>(count) * sizeof(long long) + 16 : 0;
  made->clear_bytes = fixed_bytes + (holds_sums ? 0 : static_cast<std::size_t>(count) * sizeof(float));
  if (made->clear_bytes > 0) {
    const CurrentDevice current(forward.device.index);
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, made->clear_bytes), "ms_deform_attn_backward: scratch of the plan");
    made->scratch = std::shared_ptr<void>(memory, [](void* at) { (void)cudaFree(at); });
  }
  auto* scratch = static_cast<unsigned char*>(made->scratch.get());
  if (wanted.fixed) {
    call.largest = reinterpret_cast<unsigned*>(scratch);
    call.fixed = reinterpret_cast<long long*>(scratch + 16);
    call.count_bits = count_bits(forward);
  }
  if (holds_sums) {
    call.sums = value_rows(value);
    if (value.is_contiguous()) made->clear_output_bytes = static_cast<std::size_t>(count) * sizeof(float);
  } else {
    const std::int64_t row = forward.heads * forward.channels;
    call.sums = {scratch + fixed_bytes, forward.length * row, row, forward.channels, 1};
  }
  if (wanted.fixed || !holds_sums) made->finished = value;
  return made;
}

/// What every variant asks of items and levels.
inline Support supports_items(const Problem& problem) {
  const ms_deform_attn::Problem& forward = problem.forward;
  if (forward.batch * forward.queries > std::int64_t{INT32_MAX} / std::max<std::int64_t>(forward.heads, 1))
    return Support::no("needs less than 2^31 queries times heads");
  for (const ms_deform_attn::Level& level : forward.levels)
    if (level.first_point + level.points > INT32_MAX)
      return Support::no("needs less than 2^31 sampling points per query");
  return supports_levels(forward);
}

inline const Prepared& prepared_backward(const Arguments& arguments) {
  return *static_cast<const Prepared*>(arguments.prepared.get());
}

/// Blocks of a kernel that goes round.
inline LaunchConfig rounds(std::int64_t threads, int device) {
  const std::int64_t resident = std::int64_t{device_info({DeviceType::cuda, device}).multiprocessors} * 8;
  const std::int64_t wanted = (threads + kBackwardThreads - 1) / kBackwardThreads;
  return {.grid = dim3(static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, resident))),
          .block = dim3(kBackwardThreads)};
}

/// Clears the sums, runs the variant's kernel by `main`, and makes the gradient from the sums.
template <class Main>
void launch_backward(const LaunchSite& site, const Problem& problem, const Arguments& arguments, Stream stream,
                     const Main& main) {
  const Prepared& prepared = prepared_backward(arguments);
  const BackwardCall& call = prepared.call;
  const ms_deform_attn::Problem& forward = problem.forward;
  const CurrentDevice current(forward.device.index);
  const auto on = static_cast<cudaStream_t>(stream);
  const std::int64_t count = forward.batch * forward.length * forward.heads * forward.channels;
  const bool sums = call.sums.data != nullptr;
  if (prepared.clear_bytes > 0)
    check_cuda(cudaMemsetAsync(prepared.scratch.get(), 0, prepared.clear_bytes, on), site.where);
  if (prepared.clear_output_bytes > 0)
    check_cuda(cudaMemsetAsync(const_cast<void*>(call.sums.data), 0, prepared.clear_output_bytes, on), site.where);
  else if (sums && call.sums.data == arguments.gradients.value.data)
    launch_kernel<clear_sums<float>>(site, rounds(count, forward.device.index), stream, call);
  with_value_type(forward.value_dtype, [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    if (call.inputs.items == 0) return;
    if (call.fixed != nullptr)
      launch_kernel<find_largest<Value>>(site, rounds(call.inputs.items * 32, forward.device.index), stream, call);
    main(value, call);
  });
  if (!sums || !ConstTensorView(prepared.finished).given()) return;
  with_value_type(prepared.finished.dtype, [&](auto* to) {
    launch_kernel<finish_sums<std::remove_pointer_t<decltype(to)>>>(site, rounds(count, forward.device.index), stream,
                                                                    call, value_rows(prepared.finished));
  });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::cuda
