// A call as the kernels take it: the addresses of Arguments, with the tables that live on the host moved to the device.
#pragma once

#include <cstdint>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample::gpu {

/// Samples per target as ratio / 2^shift: where a target lies among the samples if both are evenly spread.
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

/// Samples [first, first + count).
struct Range {
  int first = 0;
  int count = 0;
};

/// Addresses [begin, end) of a tensor's memory.
struct MemoryRange {
  const unsigned char* begin = nullptr;
  const unsigned char* end = nullptr;
};

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
  MemoryRange time_memory{};        // of the source times: copies of 16-byte units stay inside
  MemoryRange value_memory{};
};

/// The memory of a tensor with unit channel stride, of `row_elements` per row.
MemoryRange memory_of(const Rows& rows, std::int64_t trajectories, std::int64_t row_count, std::int64_t row_elements,
                      DType dtype);

/// The call with its tables still on the host.
Call make_call(const Problem& problem, const Arguments& arguments);

}  // namespace tmaops::ops::resample::gpu
