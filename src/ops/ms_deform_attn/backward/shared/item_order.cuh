// The order in which kernels take the items: all queries of some heads of an image come before those of its other
// heads, so that the part of the value, and of its gradient's sums, that they touch stays in the L2 (A20).
#pragma once

#include "ops/ms_deform_attn/backward/shared/call.hpp"
#include "ops/ms_deform_attn/shared/points.cuh"

namespace tmaops::ops::ms_deform_attn_backward::gpu {

struct ItemOrder {
  std::uint32_t heads = 1;   // that stay together, a divisor of all
  std::uint32_t groups = 1;  // of them in an image

  /// Item `number` of a call, which has less than 2^31 (supports_items).
  __device__ __forceinline__ Item item(const Call& call, std::uint32_t number) const {
    const auto queries = static_cast<std::uint32_t>(call.queries);
    const std::uint32_t row = number / heads;
    const std::uint32_t group = row / queries;
    const std::uint32_t n = group / groups;
    return {n, row - group * queries, (group - n * groups) * heads + (number - row * heads)};
  }
};

inline ItemOrder item_order(const ms_deform_attn::Problem& problem) {
  constexpr std::int64_t kPartOfL2 = 2;  // the other half of an H100's lies farther away
  constexpr std::int64_t kSector = 32;   // bytes: items side by side fill those of the weights
  const auto bytes_of = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  const std::int64_t head_bytes =
      problem.length * problem.channels * (bytes_of(problem.value_dtype) + std::int64_t{sizeof(float)});
  const std::int64_t weight_bytes = problem.points * bytes_of(problem.weight_dtype);
  const std::int64_t most = device_info(problem.device).l2_bytes / kPartOfL2;
  std::int64_t heads = problem.heads;
  for (std::int64_t fewer = heads - 1; fewer >= 1 && heads * head_bytes > most; --fewer)
    if (problem.heads % fewer == 0 && fewer * weight_bytes >= kSector) heads = fewer;
  return {static_cast<std::uint32_t>(heads),
          static_cast<std::uint32_t>(problem.heads / std::max<std::int64_t>(heads, 1))};
}

}  // namespace tmaops::ops::ms_deform_attn_backward::gpu
