#include "ops/ms_deform_attn/shared/call.hpp"

#include <algorithm>

#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {
namespace {

PointRows point_rows(const Problem& problem, const ConstTensorView& tensor, bool pairs) {
  const std::size_t point = problem.ragged ? 3 : 4;
  return {tensor.data,
          tensor.dtype,
          tensor.strides[0],
          tensor.strides[1],
          tensor.strides[2],
          tensor.strides[point],
          pairs ? tensor.strides[point + 1] : 0};
}

/// Whether every level's points are fours next to each other whose addresses are multiples of 16 bytes, or of their
/// size where that is less. `each` is 2 for locations, 1 for weights.
bool are_fours(const Problem& problem, const ConstTensorView& tensor, std::int64_t each) {
  const PointRows rows = point_rows(problem, tensor, each == 2);
  if (rows.point != each || (each == 2 && rows.axis != 1)) return false;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const std::int64_t unit = std::min<std::int64_t>(16, 4 * each * size);
  const auto aligned = [&](std::int64_t elements) { return elements * size % unit == 0; };
  bool result = reinterpret_cast<std::uintptr_t>(tensor.data) % static_cast<std::uintptr_t>(unit) == 0 &&
                aligned(rows.image) && aligned(rows.query) && aligned(rows.head);
  for (const Level& level : problem.levels)
    result = result && level.points % 4 == 0 && aligned(point_offset(problem, level, 0, tensor));
  return result;
}

}  // namespace

ChannelRows value_rows(const ConstTensorView& value) {
  return {value.data, value.strides[0], value.strides[1], value.strides[2], value.strides[3]};
}

ChannelRows query_rows(const Problem& problem, const ConstTensorView& tensor) {
  return {tensor.data, tensor.strides[0], tensor.strides[1], problem.channels * tensor.strides[2], tensor.strides[2]};
}

PointRows location_rows(const Problem& problem, const ConstTensorView& locations) {
  return point_rows(problem, locations, true);
}

PointRows weight_rows(const Problem& problem, const ConstTensorView& weights) {
  return point_rows(problem, weights, false);
}

std::vector<DeviceLevel> device_levels(const Problem& problem, const ConstTensorView& value,
                                       const ConstTensorView& locations, const ConstTensorView& weights) {
  std::vector<DeviceLevel> levels;
  for (const Level& level : problem.levels)
    levels.push_back(
        {.value_at = level.start * value.strides[1],
         .location_at = point_offset(problem, level, 0, locations),
         .weight_at = point_offset(problem, level, 0, weights),
         .points = level.points,
         .height = static_cast<int>(level.height),
         .width = static_cast<int>(level.width),
         .pitch = static_cast<int>(level.pitch),
         .last_point = static_cast<int>(std::min<std::int64_t>(level.first_point + level.points, INT32_MAX)),
         .first_pixel = level.start});
  return levels;
}

Call input_call(const Problem& problem, const ConstTensorView& value, const ConstTensorView& locations,
                const ConstTensorView& weights) {
  Call call;
  call.value = value_rows(value);
  call.locations = location_rows(problem, locations);
  call.weights = weight_rows(problem, weights);
  call.heads = problem.heads;
  call.queries = problem.queries;
  call.channels = problem.channels;
  call.items = problem.batch * problem.queries * problem.heads;
  call.points = problem.points;
  call.nearest = problem.sampling == Sampling::nearest;
  call.border = problem.bordered ? 2 : 0;
  call.level_count = static_cast<int>(problem.levels.size());
  call.point_vectors = are_fours(problem, locations, 2) && are_fours(problem, weights, 1);
  if (call.level_count <= kInlineLevels)
    std::ranges::copy(device_levels(problem, value, locations, weights), call.levels);
  return call;
}

Call forward_call(const Problem& problem, const Arguments& arguments) {
  Call call = input_call(problem, arguments.value, arguments.sampling_locations, arguments.attention_weights);
  call.output = query_rows(problem, arguments.output);
  call.f32_output = problem.output_dtype == DType::f32;
  return call;
}

LaunchShape one_group_each(std::int64_t items, int threads, int bits, bool dependent_launch) {
  const std::int64_t per_block = std::int64_t{threads} >> bits;
  return {.grid = static_cast<unsigned>((items + per_block - 1) / per_block),
          .block = static_cast<unsigned>(threads),
          .dependent = dependent_launch};
}

Support supports_levels(const Problem& problem) {
  if (problem.levels_on_device && problem.length > INT32_MAX)
    return Support::no("needs S below 2^31 where only the device knows the levels");
  for (const Level& level : problem.levels)
    if (level.height > INT32_MAX || level.pitch > INT32_MAX)
      return Support::no("needs levels of less than 2^31 pixels a side");
  return Support::yes();
}

Support supports_f32_and_host_levels(const Problem& problem) {
  if (problem.levels_on_device) return Support::no("needs the shapes of the levels on the host");
  if (problem.value_dtype == DType::f64) return Support::no("computes in f32, the value is f64");
  return Support::yes();
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
