// What plan() of every variant begins with: the call, its tables in device memory, and the types of its kernel.
#pragma once

#include <vector>

#include "core/cuda_types.hpp"
#include "core/upload.cuh"
#include "ops/resample/shared/call.hpp"

namespace tmaops::ops::resample::gpu {

/// The call for kernels. The work allocates device memory for packed rows and for several channel groups only. Offsets
/// that are on the device already stay what they are there.
inline Call device_call(Work& work, const Problem& problem, const Arguments& arguments) {
  Call call = make_call(problem, arguments);
  std::vector<unsigned char> tables;
  const auto append = [&](const auto& table) {
    const std::size_t at = tables.size();
    const auto* bytes = reinterpret_cast<const unsigned char*>(table.data());
    tables.insert(tables.end(), bytes, bytes + table.size() * sizeof(table[0]));
    return at;
  };
  const bool source_table = problem.packed_source && !problem.source_offsets_on_device;
  const bool target_table = problem.packed_target && !problem.target_offsets_on_device;
  const std::size_t source_at = source_table ? append(arguments.offsets->source) : 0;
  const std::size_t target_at = target_table ? append(arguments.offsets->target) : 0;
  const std::size_t groups_at = problem.groups.size() > 1 ? append(problem.groups) : 0;
  if (tables.empty()) return call;

  const unsigned char* device = upload(work, tables);
  const auto offsets = [&](std::size_t at) { return reinterpret_cast<const std::int64_t*>(device + at); };
  if (source_table) {
    call.line.source_offsets = call.values.offsets = offsets(source_at);
    if (call.line.source.offsets) call.line.source.offsets = call.line.source_offsets;
  }
  if (target_table) {
    call.line.target_offsets = call.output.offsets = offsets(target_at);
    if (call.line.target.offsets) call.line.target.offsets = call.line.target_offsets;
    if (call.valid.offsets) call.valid.offsets = call.line.target_offsets;
  }
  if (problem.groups.size() > 1) call.groups = reinterpret_cast<const ChannelGroup*>(device + groups_at);
  return call;
}

/// Calls fn(time type, value type) with null pointers of the types of a problem.
template <class Fn>
void with_types(const Problem& problem, const Fn& fn) {
  with_value_type(problem.values,
                  [&](auto* value) { visit_time_type(problem.times, [&](auto* time) { fn(time, value); }); });
}

/// Blocks are (tile, trajectory), the trajectory spread over y and z, which hold 65,535 each.
inline Extent tile_grid(std::int64_t tiles, std::int64_t batch) {
  const std::int64_t y = std::min<std::int64_t>(batch, 65535);
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(y), static_cast<unsigned>((batch + y - 1) / y)};
}

/// The launch of a kernel whose blocks take `tile` of a trajectory's `targets` each.
inline LaunchShape tile_launch(const Problem& problem, const Arguments& arguments, std::int64_t targets, int tile,
                               int threads, int shared_bytes = 0) {
  return {.grid = tile_grid((targets + tile - 1) / tile, problem.batch),
          .block = static_cast<unsigned>(threads),
          .shared_bytes = shared_bytes,
          .dependent = arguments.dependent_launch};
}

}  // namespace tmaops::ops::resample::gpu
