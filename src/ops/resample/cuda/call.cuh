// A call as the kernels take it: the addresses of Arguments, with the tables that live on the host copied to the
// device once per plan.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "core/cuda_launch.hpp"
#include "core/cuda_types.hpp"
#include "ops/resample/problem.hpp"
#include "resample_sites.hpp"

namespace tmaops::ops::resample::cuda {

/// Samples per target as ratio / 2^shift: where a target stands among the samples if both are evenly spread.
struct Pace {
  std::uint32_t ratio = 0;
  int shift = 0;
};

/// Of a trajectory with at most 2^30 samples.
constexpr Pace pace_of(std::int64_t samples, std::int64_t targets) {
  if (samples < 2 || targets < 2) return {};
  std::uint64_t ratio = (static_cast<std::uint64_t>(samples - 1) << 31) / static_cast<std::uint64_t>(targets - 1);
  int shift = 31;
  for (; ratio >> 32 != 0; --shift) ratio >>= 1;
  return {static_cast<std::uint32_t>(ratio), shift};
}

/// Passed to kernels by value.
struct Call {
  Timeline line{};  // offsets are in device memory
  Rows values{};
  Rows output{};
  Rows valid{};
  Interpolation interpolation = Interpolation::linear;  // of all channels when group_count is 1
  int group_count = 1;
  const ChannelGroup* groups = nullptr;  // in device memory, when group_count is more than 1
  std::int64_t channels = 0;
  std::int64_t longest_target = 0;  // targets of the trajectory that has most
  Pace pace{};                      // of trajectories that are not packed
  // Where the memory of these tensors begins and ends: copies of 16-byte units stay inside.
  const unsigned char* times_begin = nullptr;
  const unsigned char* times_end = nullptr;
  const unsigned char* values_begin = nullptr;
  const unsigned char* values_end = nullptr;
};

/// Addresses [begin, end) of the rows of a tensor with unit channel stride.
inline void find_extent(const Rows& rows, std::int64_t trajectories, std::int64_t row_count, std::int64_t row_elements,
                        DType dtype, const unsigned char*& begin, const unsigned char*& end) {
  if (trajectories == 0 || row_count == 0) return;
  const std::int64_t trajectory = rows.offsets ? 0 : (trajectories - 1) * rows.trajectory_stride;
  const std::int64_t row = (row_count - 1) * rows.row_stride;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto* data = static_cast<const unsigned char*>(rows.data);
  begin = data + (std::min<std::int64_t>(trajectory, 0) + std::min<std::int64_t>(row, 0)) * bytes;
  end = data + (std::max<std::int64_t>(trajectory, 0) + std::max<std::int64_t>(row, 0) + row_elements) * bytes;
}

/// What prepare() makes and launch() reads.
struct Prepared {
  Call call{};
  std::shared_ptr<const void> tables{};  // device memory behind the offsets and groups; null when there are none
};

/// Copies host bytes into device memory that lives as long as the result. Freeing waits for the kernels that use it.
inline std::shared_ptr<const void> upload(const unsigned char* bytes, std::size_t count) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, count), "resample: tables of the plan");
  std::shared_ptr<const void> owner(memory, [](const void* at) { (void)cudaFree(const_cast<void*>(at)); });
  check_cuda(cudaMemcpy(memory, bytes, count, cudaMemcpyHostToDevice), "resample: tables of the plan");
  return owner;
}

/// prepare() of every variant. Allocates device memory for packed rows and for several channel groups only.
inline std::shared_ptr<const void> prepare_call(const Problem& problem, const Arguments& arguments) {
  auto prepared = std::make_shared<Prepared>();
  Call& call = prepared->call;
  call.line = arguments.timeline;
  call.values = arguments.values;
  call.output = arguments.output;
  call.valid = arguments.valid;
  call.channels = problem.channels;
  call.group_count = static_cast<int>(problem.groups.size());
  if (!problem.groups.empty()) call.interpolation = problem.groups.front().interpolation;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    call.longest_target = std::max(call.longest_target, arguments.timeline.target_count(b));
    if (!problem.packed_target) break;
  }

  if (problem.source <= 1 << 30) call.pace = pace_of(problem.source, problem.target);
  find_extent(call.line.source, problem.batch, problem.source, 1, problem.times, call.times_begin, call.times_end);
  find_extent(call.values, problem.batch, problem.source, problem.channels, problem.values, call.values_begin,
              call.values_end);

  const std::size_t offset_bytes = static_cast<std::size_t>(problem.batch + 1) * sizeof(std::int64_t);
  const std::size_t target_at = problem.packed_source ? offset_bytes : 0;
  const std::size_t groups_at = target_at + (problem.packed_target ? offset_bytes : 0);
  const std::size_t group_bytes = problem.groups.size() > 1 ? problem.groups.size() * sizeof(ChannelGroup) : 0;
  const auto bytes = std::make_unique<unsigned char[]>(groups_at + group_bytes);
  if (problem.packed_source) std::memcpy(bytes.get(), arguments.timeline.source_offsets, offset_bytes);
  if (problem.packed_target) std::memcpy(bytes.get() + target_at, arguments.timeline.target_offsets, offset_bytes);
  if (group_bytes > 0) std::memcpy(bytes.get() + groups_at, problem.groups.data(), group_bytes);
  if (groups_at + group_bytes == 0) return prepared;

  const CurrentDevice current(problem.device.index);
  prepared->tables = upload(bytes.get(), groups_at + group_bytes);
  const auto* tables = static_cast<const unsigned char*>(prepared->tables.get());
  const auto offsets_at = [&](std::size_t at) { return reinterpret_cast<const std::int64_t*>(tables + at); };
  if (problem.packed_source) {
    call.line.source_offsets = offsets_at(0);
    call.values.offsets = call.line.source_offsets;
    if (call.line.source.offsets) call.line.source.offsets = call.line.source_offsets;
  }
  if (problem.packed_target) {
    call.line.target_offsets = offsets_at(target_at);
    call.output.offsets = call.line.target_offsets;
    if (call.line.target.offsets) call.line.target.offsets = call.line.target_offsets;
    if (call.valid.offsets) call.valid.offsets = call.line.target_offsets;
  }
  if (problem.groups.size() > 1) call.groups = reinterpret_cast<const ChannelGroup*>(tables + groups_at);
  return prepared;
}

inline const Call& prepared_call(const Arguments& arguments) {
  return static_cast<const Prepared*>(arguments.prepared.get())->call;
}

/// Calls fn(time type, value type) with null pointers of the types of a problem.
template <class Fn>
void with_types(const Problem& problem, const Fn& fn) {
  const auto with_value = [&](auto* time) { with_value_type(problem.values, [&](auto* value) { fn(time, value); }); };
  if (problem.times == DType::f32)
    with_value(static_cast<float*>(nullptr));
  else if (problem.times == DType::f64)
    with_value(static_cast<double*>(nullptr));
  else
    with_value(static_cast<std::int64_t*>(nullptr));
}

}  // namespace tmaops::ops::resample::cuda
