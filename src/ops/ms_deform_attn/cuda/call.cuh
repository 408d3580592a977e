// A call as the kernels take it: addresses, strides in elements, and the levels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/cuda_launch.hpp"
#include "core/cuda_types.hpp"
#include "ms_deform_attn_sites.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn::cuda {

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
  __host__ __device__ std::int64_t row(std::int64_t n, std::int64_t q, std::int64_t m) const {
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
  __host__ __device__ std::int64_t at(std::int64_t n, std::int64_t i, std::int64_t m) const {
    return n * image + i * row + m * head;
  }
};

/// Passed to kernels by value.
struct Call {
  ChannelRows value{};
  ChannelRows output{};
  PointRows locations{};
  PointRows weights{};
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t channels = 0;
  std::int64_t items = 0;  // N * Lq * M
  std::int64_t points = 0;
  int level_count = 0;
  bool nearest = false;
  bool point_vectors = false;  // points come in fours that lie next to each other, aligned to 16 bytes or their size
  const DeviceLevel* table = nullptr;  // in device memory, when there are more than kInlineLevels
  DeviceLevel levels[kInlineLevels];

  __device__ __forceinline__ DeviceLevel level(int l) const {
    if (table != nullptr) return table[l];
    return levels[l];
  }
};

/// Image, query and head of item (n * Lq + q) * M + m.
struct Item {
  std::int64_t n = 0;
  std::int64_t q = 0;
  std::int64_t m = 0;
};

__device__ __forceinline__ Item item_at(const Call& call, std::int64_t index) {
  if (call.items <= INT32_MAX) {  // divisions of 64 bits take some hundred instructions
    const auto i = static_cast<std::uint32_t>(index);
    const auto heads = static_cast<std::uint32_t>(call.heads);
    const auto queries = static_cast<std::uint32_t>(call.queries);
    const std::uint32_t row = i / heads;
    const std::uint32_t n = row / queries;
    return {n, row - n * queries, i - row * heads};
  }
  const std::int64_t row = index / call.heads;
  const std::int64_t n = row / call.queries;
  return {n, row - n * call.queries, index - row * call.heads};
}

inline ChannelRows value_rows(const ConstTensorView& value) {
  return {value.data, value.strides[0], value.strides[1], value.strides[2], value.strides[3]};
}
/// (N, Lq, M * D), as channels of heads.
inline ChannelRows query_rows(const Problem& problem, const ConstTensorView& tensor) {
  return {tensor.data, tensor.strides[0], tensor.strides[1], problem.channels * tensor.strides[2], tensor.strides[2]};
}
inline PointRows point_rows(const Problem& problem, const ConstTensorView& tensor, bool pairs) {
  const std::size_t point = problem.ragged ? 3 : 4;
  return {tensor.data,
          tensor.dtype,
          tensor.strides[0],
          tensor.strides[1],
          tensor.strides[2],
          tensor.strides[point],
          pairs ? tensor.strides[point + 1] : 0};
}
/// Offset of the first point of level l behind [n, q, m].
inline std::int64_t level_offset(const Problem& problem, const Layout& layout, std::size_t l) {
  return problem.ragged ? problem.levels[l].first_point * layout.strides[3]
                        : static_cast<std::int64_t>(l) * layout.strides[3];
}

/// Whether every level's points are fours next to each other whose addresses are multiples of 16 bytes, or of their
/// size where that is less. `each` is 2 for locations, 1 for weights.
inline bool are_fours(const Problem& problem, const ConstTensorView& tensor, std::int64_t each) {
  const PointRows rows = point_rows(problem, tensor, each == 2);
  if (rows.point != each || (each == 2 && rows.axis != 1)) return false;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const std::int64_t unit = std::min<std::int64_t>(16, 4 * each * size);
  const auto aligned = [&](std::int64_t elements) { return elements * size % unit == 0; };
  bool result = reinterpret_cast<std::uintptr_t>(tensor.data) % static_cast<std::uintptr_t>(unit) == 0 &&
                aligned(rows.image) && aligned(rows.query) && aligned(rows.head);
  for (std::size_t l = 0; l < problem.levels.size(); ++l)
    result = result && problem.levels[l].points % 4 == 0 && aligned(level_offset(problem, tensor, l));
  return result;
}

/// What prepare() makes and launch() reads.
struct Prepared {
  Call call{};
  std::shared_ptr<const void> table{};  // device memory behind Call::table; null when there is none
};

/// The parts of a call that forward and backward share. Allocates device memory for more than kInlineLevels levels.
inline Prepared prepare_inputs(const Problem& problem, const ConstTensorView& value, const ConstTensorView& locations,
                               const ConstTensorView& weights) {
  Prepared prepared;
  Call& call = prepared.call;
  call.value = value_rows(value);
  call.locations = point_rows(problem, locations, true);
  call.weights = point_rows(problem, weights, false);
  call.heads = problem.heads;
  call.queries = problem.queries;
  call.channels = problem.channels;
  call.items = problem.batch * problem.queries * problem.heads;
  call.points = problem.points;
  call.nearest = problem.sampling == Sampling::nearest;
  call.level_count = static_cast<int>(problem.levels.size());
  call.point_vectors = are_fours(problem, locations, 2) && are_fours(problem, weights, 1);
  std::vector<DeviceLevel> levels;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const Level& level = problem.levels[l];
    levels.push_back(
        {.value_at = level.start * value.strides[1],
         .location_at = level_offset(problem, locations, l),
         .weight_at = level_offset(problem, weights, l),
         .points = level.points,
         .height = static_cast<int>(level.height),
         .width = static_cast<int>(level.width),
         .pitch = static_cast<int>(level.pitch),
         .last_point = static_cast<int>(std::min<std::int64_t>(level.first_point + level.points, INT32_MAX)),
         .first_pixel = level.start});
  }
  if (levels.size() <= kInlineLevels) {
    std::copy(levels.begin(), levels.end(), call.levels);
    return prepared;
  }
  const CurrentDevice current(problem.device.index);
  void* memory = nullptr;
  const std::size_t bytes = levels.size() * sizeof(DeviceLevel);
  check_cuda(cudaMalloc(&memory, bytes), "ms_deform_attn: levels of the plan");
  prepared.table = std::shared_ptr<const void>(memory, [](const void* at) { (void)cudaFree(const_cast<void*>(at)); });
  check_cuda(cudaMemcpy(memory, levels.data(), bytes, cudaMemcpyHostToDevice), "ms_deform_attn: levels of the plan");
  call.table = static_cast<const DeviceLevel*>(memory);
  return prepared;
}

/// prepare() of the forward variants.
inline std::shared_ptr<Prepared> prepare_call(const Problem& problem, const Arguments& arguments) {
  auto prepared = std::make_shared<Prepared>(
      prepare_inputs(problem, arguments.value, arguments.sampling_locations, arguments.attention_weights));
  prepared->call.output = query_rows(problem, arguments.output);
  return prepared;
}

inline const Call& prepared_call(const Arguments& arguments) {
  return static_cast<const Prepared*>(arguments.prepared.get())->call;
}

/// What every variant asks of the levels.
inline Support supports_levels(const Problem& problem) {
  for (const Level& level : problem.levels)
    if (level.height > INT32_MAX || level.pitch > INT32_MAX)
      return Support::no("needs levels of less than 2^31 pixels a side");
  return Support::yes();
}

inline constexpr int kWarpBits = 5;  // of a group that is a whole warp

/// One group of 2^bits threads for each item, in blocks of `threads`. No blocks where there are no items.
inline LaunchConfig one_group_each(std::int64_t items, int threads, int bits, bool dependent_launch) {
  const std::int64_t per_block = std::int64_t{threads} >> bits;
  return {.grid = dim3(static_cast<unsigned>((items + per_block - 1) / per_block)),
          .block = dim3(static_cast<unsigned>(threads)),
          .dependent = dependent_launch};
}

/// A type known at run time only, for locations and weights.
struct AnyType {};

/// Calls fn(value type, point type) with null pointers. The point type is that of locations and weights where these are
/// equal and of at most 32 bits, else AnyType.
template <class Fn>
void with_types(const Problem& problem, const Fn& fn) {
  const auto with_points = [&](auto* value) {
    const DType points = problem.location_dtype == problem.weight_dtype ? problem.location_dtype : DType::f64;
    if (points == DType::f32)
      fn(value, static_cast<float*>(nullptr));
    else if (points == DType::f16)
      fn(value, static_cast<__half*>(nullptr));
    else if (points == DType::bf16)
      fn(value, static_cast<__nv_bfloat16*>(nullptr));
    else
      fn(value, static_cast<AnyType*>(nullptr));
  };
  with_value_type(problem.value_dtype, with_points);
}

}  // namespace tmaops::ops::ms_deform_attn::cuda
