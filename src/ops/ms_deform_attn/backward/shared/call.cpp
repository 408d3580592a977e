#include "ops/ms_deform_attn/backward/shared/call.hpp"

#include <algorithm>
#include <bit>

namespace tmaops::ops::ms_deform_attn_backward::gpu {
namespace {

PointOffsets offsets_of(const ms_deform_attn::Problem& problem, const Layout& layout) {
  return {layout.strides[3], layout.strides[problem.ragged ? 3 : 4], problem.ragged};
}

}  // namespace

BackwardCall backward_call(const Problem& problem, const Arguments& arguments) {
  const ms_deform_attn::Problem& forward = problem.forward;
  BackwardCall call;
  call.inputs = input_call(forward, arguments.value, arguments.sampling_locations, arguments.attention_weights);
  call.shapes = device_shapes(forward, arguments.level_views);
  call.inputs.output = query_rows(forward, arguments.grad_output);
  call.grad_output = problem.grad_output_dtype;
  call.length = forward.length;
  call.batch = forward.batch;
  const MsDeformAttnGradients& gradients = arguments.gradients;
  if (problem.grad_sampling_locations) {
    call.locations = location_rows(forward, gradients.sampling_locations);
    call.location_offsets = offsets_of(forward, gradients.sampling_locations);
  }
  if (problem.grad_attention_weights) {
    call.weights = weight_rows(forward, gradients.attention_weights);
    call.weight_offsets = offsets_of(forward, gradients.attention_weights);
  }
  return call;
}

int count_bits(const ms_deform_attn::Problem& problem) {
  const std::int64_t most = std::ranges::max(problem.levels, {}, &ms_deform_attn::Level::points).points;
  const std::int64_t terms = std::max<std::int64_t>(most, 1) * problem.queries;
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(terms)));
}

LaunchShape rounds(std::int64_t threads, Device device) {
  constexpr std::int64_t kBlocksPerMultiprocessor = 8;
  const std::int64_t resident = device_info(device).multiprocessors * kBlocksPerMultiprocessor;
  const std::int64_t wanted = (threads + kBackwardThreads - 1) / kBackwardThreads;
  return {.grid = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, resident)), .block = kBackwardThreads};
}

Support supports_items(const Problem& problem) {
  const ms_deform_attn::Problem& forward = problem.forward;
  if (forward.batch * forward.queries > std::int64_t{INT32_MAX} / std::max<std::int64_t>(forward.heads, 1))
    return Support::no("needs less than 2^31 queries times heads");
  for (const ms_deform_attn::Level& level : forward.levels)
    if (level.first_point + level.points > INT32_MAX)
      return Support::no("needs less than 2^31 sampling points per query");
  return supports_levels(forward);
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
