#include "ops/resample/shared/call.hpp"

#include <algorithm>

namespace tmaops::ops::resample::gpu {

MemoryRange memory_of(const Rows& rows, std::int64_t trajectories, std::int64_t row_count, std::int64_t row_elements,
                      DType dtype) {
  if (trajectories == 0 || row_count == 0) return {};
  const std::int64_t trajectory = rows.offsets ? 0 : (trajectories - 1) * rows.trajectory_stride;
  const std::int64_t row = (row_count - 1) * rows.row_stride;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto* data = static_cast<const unsigned char*>(rows.data);
  return {data + (std::min<std::int64_t>(trajectory, 0) + std::min<std::int64_t>(row, 0)) * bytes,
          data + (std::max<std::int64_t>(trajectory, 0) + std::max<std::int64_t>(row, 0) + row_elements) * bytes};
}

Call make_call(const Problem& problem, const Arguments& arguments) {
  Call call;
  call.line = arguments.timeline;
  call.values = arguments.values;
  call.output = arguments.output;
  call.valid = arguments.valid;
  call.channels = problem.channels;
  call.group_count = static_cast<int>(problem.groups.size());
  if (!problem.groups.empty()) call.interpolation = problem.groups.front().interpolation;
  if (problem.target_offsets_on_device) call.longest_target = problem.target;
  for (std::int64_t b = 0; b < problem.batch && !problem.target_offsets_on_device; ++b) {
    call.longest_target = std::max(call.longest_target, arguments.timeline.target_count(b));
    if (!problem.packed_target) break;
  }
  if (problem.source <= 1 << 30) call.pace = pace_of(problem.source, problem.target);
  call.time_memory = memory_of(call.line.source, problem.batch, problem.source, 1, problem.times);
  call.value_memory = memory_of(call.values, problem.batch, problem.source, problem.channels, problem.values);
  return call;
}

}  // namespace tmaops::ops::resample::gpu
