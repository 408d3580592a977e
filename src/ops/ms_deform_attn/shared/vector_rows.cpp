#include "ops/ms_deform_attn/shared/vector_rows.hpp"

#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

int lane_bits(const Problem& problem) {
  constexpr int kMostBits = 5;  // a warp's threads
  const std::int64_t bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype));
  for (int bits = 0; bits <= kMostBits; ++bits)
    if (bytes == 16 << bits) return bits;
  return -1;
}

Support supports_vector_rows(const Problem& problem) {
  if (Support support = supports_levels(problem); !support) return support;
  if (Support support = supports_f32_and_host_levels(problem); !support) return support;
  if (lane_bits(problem) < 0)
    return Support::no("needs channels of 16, 32, 64, 128, 256 or 512 bytes, D = " + std::to_string(problem.channels) +
                       " of " + std::string(to_string(problem.value_dtype)) + " has " +
                       std::to_string(problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype))));
  if (!problem.dense_channels || problem.row_alignment < 16)
    return Support::no("needs channels next to each other, at multiples of 16 bytes");
  if (!problem.dense_pairs) return Support::no("needs x and y next to each other, at multiples of their size");
  if (problem.levels.size() > kInlineLevels)
    return Support::no("needs at most " + std::to_string(kInlineLevels) + " levels");
  if (problem.map_bytes > std::int64_t{INT32_MAX} * 8)
    return Support::no("needs maps of an image and head that span less than 16 GiB");
  if (problem.points > INT32_MAX / 2) return Support::no("needs less than 2^30 sampling points per query");
  return Support::yes();
}

Support supports_vectors(const Problem& problem) {
  if (Support support = supports_plain(problem); !support) return support;
  return supports_vector_rows(problem);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
