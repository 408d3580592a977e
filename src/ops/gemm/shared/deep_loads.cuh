// Loads of stages of 128 of k, which hold two products' worth: an instruction of the copy engine takes the thread that
// issues it 100 to 160 cycles, whatever it brings, so fewer and larger ones are better.
#pragma once

#include "ops/gemm/shared/tensor_maps.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kDeepRows = 64;
inline constexpr int kHalves = 2;  // products of kDepth in a stage
inline constexpr int kDeepDepth = kHalves * kDepth;

/// The map and the load of a tile of `extent` rows or columns, kDeepDepth deep. The L2 fetches the lines that are asked
/// for and not their neighbours too, which other blocks ask for (docs/findings/gemm.md, G19).
inline MappedOperand map_deep(const MatrixLayout& layout, const void* data, std::int64_t batch, bool inner_is_column,
                              Major major, int extent) {
  const bool k_major = major == Major::k;
  MappedOperand made(layout, data, batch, inner_is_column, k_major ? kHalves : extent / 64,
                     k_major ? extent : (extent == 64 ? kDeepDepth : kDepth));
  made.spec.l2_promotion = tma::L2Promotion::b128;
  return made;
}
inline MappedOperand map_deep_a(const RowMajorCall& call) {
  const Major major = major_of_a(call.problem);
  return map_deep(call.problem.a, call.arguments.a, call.problem.batch, major == Major::k, major, kDeepRows);
}
inline MappedOperand map_deep_b(const RowMajorCall& call, int columns) {
  const Major major = major_of_b(call.problem);
  return map_deep(call.problem.b, call.arguments.b, call.problem.batch, major == Major::mn, major, columns);
}
template <Major major, int extent, class... Hint>
__device__ __forceinline__ void load_deep(unsigned char (&to)[kHalves][extent * kRowBytes], const tma::TensorMap& map,
                                          const TensorOperand& operand, int mn, int k, int batch, device::Barrier& full,
                                          Hint... hint) {
  if constexpr (major == Major::k) {
    load_panels<kHalves, extent * kRowBytes>(to[0], map, operand, k, mn, batch, full, 0, hint...);
  } else if constexpr (extent == 64) {
    load_panels<1, 0>(to[0], map, operand, mn, k, batch, full, 0, hint...);
  } else {
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      load_tile<major, extent>(to[half], map, operand, mn, k + half * kDepth, batch, full, 0, hint...);
  }
}

/// For which part of an operand to ask the L2 to evict it first. One that several blocks read stays, and one that fills
/// three quarters of the L2 at most; of one that is read once, as much stays as fills a third of it, for the next call
/// with the same operand (docs/findings/gemm.md, G18).
inline float part_to_evict_first(const Problem& problem, const MatrixLayout& operand, int tiles_that_read) {
  const auto cache = static_cast<double>(device_info(problem.device).l2_bytes);
  const double bytes = 2.0 * static_cast<double>(operand.rows) * static_cast<double>(operand.columns) *
                       static_cast<double>(operand.batch_stride != 0 ? problem.batch : 1);
  if (tiles_that_read > 1 || bytes <= 0.75 * cache) return 0.0F;
  return static_cast<float>(1 - cache / 3 / bytes);
}
__device__ __forceinline__ device::CacheHint hint_of(float evict_first) {
  return evict_first > 0 ? device::evict_first_of(evict_first) : device::CacheHint::evict_normal;
}

}  // namespace tmaops::ops::gemm
