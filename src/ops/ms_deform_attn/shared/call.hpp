// A call as the kernels take it: addresses, strides in elements, and the levels. Forward and backward share it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/work.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Levels that travel with the kernel's parameters; more lie in device memory.
inline constexpr int kInlineLevels = 16;

/// Offsets are in elements: of value behind [n, 0, m, 0], of locations and weights behind [n, q, m].
struct DeviceLevel {
  std::int64_t value_at = 0;
  std::int64_t location_at = 0;
  std::int64_t weight_at = 0;
  std::int64_t points = 0;
  int height = 0;
  int width = 0;
  int pitch = 0;                 // pixels from row to row
  int last_point = 0;            // points of this level and those before
  std::int64_t first_pixel = 0;  // in S
};

/// Where the points' locations, or their weights, lie.
struct PointRows {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t image = 0;  // strides
  std::int64_t query = 0;
  std::int64_t head = 0;
  std::int64_t point = 0;
  std::int64_t axis = 0;  // from x to y
  constexpr std::int64_t row(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return n * image + q * query + m * head;
  }
};

/// Where the channels of a pixel, or of a query, lie.
struct ChannelRows {
  const void* data = nullptr;
  std::int64_t image = 0;  // strides
  std::int64_t row = 0;    // of a pixel in value, of a query in output
  std::int64_t head = 0;
  std::int64_t channel = 0;
  constexpr std::int64_t at(std::int64_t n, std::int64_t i, std::int64_t m) const {
    return n * image + i * row + m * head;
  }
};

/// Passed to kernels by value.
struct Call {
  ChannelRows value{};
  ChannelRows output{};  // of a backward call grad_output
  PointRows locations{};
  PointRows weights{};
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t channels = 0;
  std::int64_t items = 0;  // N * Lq * M
  std::int64_t points = 0;
  int level_count = 0;
  int border = 0;  // pixels between the rows of every level: 2, or 0 where there is no border
  bool nearest = false;
  bool f32_output = false;     // whatever the values are
  bool point_vectors = false;  // points come in fours that lie next to each other, aligned to 16 bytes or their size
  const DeviceLevel* table = nullptr;  // in device memory, when there are more than kInlineLevels
  DeviceLevel levels[kInlineLevels];

  constexpr DeviceLevel level(int l) const {
    if (table != nullptr) return table[l];
    return levels[l];
  }
};

ChannelRows value_rows(const ConstTensorView& value);
/// (N, Lq, M * D), as channels of heads.
ChannelRows query_rows(const Problem& problem, const ConstTensorView& tensor);
PointRows location_rows(const Problem& problem, const ConstTensorView& locations);
PointRows weight_rows(const Problem& problem, const ConstTensorView& weights);
std::vector<DeviceLevel> device_levels(const Problem& problem, const ConstTensorView& value,
                                       const ConstTensorView& locations, const ConstTensorView& weights);

/// The inputs of a call. Its levels are missing where there are more than kInlineLevels (upload_levels()).
Call input_call(const Problem& problem, const ConstTensorView& value, const ConstTensorView& locations,
                const ConstTensorView& weights);
/// The same with the output.
Call forward_call(const Problem& problem, const Arguments& arguments);

/// One group of 2^bits threads for each item, in blocks of `threads`.
LaunchShape one_group_each(std::int64_t items, int threads, int bits, bool dependent_launch);

/// What every variant asks of the levels.
Support supports_levels(const Problem& problem);

/// No, in words, for what only the variants that take everything take: f64 values, and level shapes on the device.
Support supports_f32_and_host_levels(const Problem& problem);

}  // namespace tmaops::ops::ms_deform_attn::gpu
