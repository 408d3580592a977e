// Split-K over as many blocks as tiles leave multiprocessors: each block sums a part of K and leaves its sums, in the
// order of its registers, in memory of the call's own. A second kernel adds the parts, always in the same order, so the
// bits are the same in every run.
#pragma once

#include "device/shared_memory.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/epilogue_values.cuh"
#include "ops/gemm/shared/warp_roles.cuh"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_persistent {

/// Of tiles that may sum parts of K; wider ones were nowhere faster (docs/findings/gemm_models.md, L10).
inline constexpr int kPartColumns = 128;
template <int n>
inline constexpr bool kTakesParts = n == kPartColumns;
inline constexpr int kPartFragments = kPartColumns / 8;

/// Where sums are kept: four of a lane, for each fragment of 8 columns, for each warp's 16 rows of a tile, for each
/// tile of each part.
struct Parts {
  float4* sums = nullptr;  // null: nothing is kept
  int row_tiles = 0, column_tiles = 0;

  /// Of a warp's rows from `row` on in the tile that begins at `column`: those of the first fragment.
  __device__ __forceinline__ float4* of_warp(int part, int row, int column) const {
    const int tile = (part * row_tiles + row / kSpecializedRows) * column_tiles + column / kPartColumns;
    const int warp = row % kSpecializedRows / kStagedRows;
    return sums + ((std::int64_t{tile} * kConsumerWarps + warp) * kPartFragments * device::kWarpThreads +
                   device::lane_index());
  }
};

/// A warp's accumulators, which begin at (row, column) of the product.
__device__ __forceinline__ void keep_sums(const Parts& parts, const float (&accumulators)[kPartColumns / 2], int row,
                                          int column, int part) {
  float4* const to = parts.of_warp(part, row, column);
#pragma unroll
  for (int atom = 0; atom < kPartFragments; ++atom) {
    const float* const from = accumulators + 4 * atom;
    to[atom * device::kWarpThreads] = make_float4(from[0], from[1], from[2], from[3]);
  }
}

/// What the second kernel is told.
struct AddJob {
  Parts kept;
  int parts = 0;
  Epilogue epilogue;
};

inline constexpr int kAddWarps = 4;

/// D from the sums of all parts: a fragment a block, whose warps take the parts in turn.
__global__ void __launch_bounds__(kAddWarps* device::kWarpThreads) add_parts(const __grid_constant__ AddJob job) {
  struct Shared {
    float4 sums[kAddWarps][device::kWarpThreads];
  };
  auto& shared = device::block_shared<Shared>();
  device::let_next_kernel_start();
  const int lane = device::lane_index();
  const int own_warp = device::warp_index();
  const auto fragment = static_cast<int>(blockIdx.x);
  const int warp = fragment / kPartFragments;
  const int tile = warp / kConsumerWarps;
  const int row = tile / job.kept.column_tiles * kSpecializedRows + warp % kConsumerWarps * kStagedRows + lane / 4;
  const int column = tile % job.kept.column_tiles * kPartColumns + fragment % kPartFragments * 8 + lane % 4 * 2;
  const std::int64_t step = std::int64_t{gridDim.x} * device::kWarpThreads;
  const float4* from = job.kept.sums + own_warp * step + std::int64_t{fragment} * device::kWarpThreads + lane;
  device::wait_for_previous_kernel();
  float4 sum{};
#pragma unroll 8
  for (int part = own_warp; part < job.parts; part += kAddWarps, from += kAddWarps * step) {
    const float4 one = *from;
    sum = {sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w};
  }
  shared.sums[own_warp][lane] = sum;
  __syncthreads();
  if (own_warp > 0) return;
#pragma unroll
  for (int i = 1; i < kAddWarps; ++i) {
    const float4 one = shared.sums[i][lane];
    sum = {sum.x + one.x, sum.y + one.y, sum.z + one.z, sum.w + one.w};
  }
  if (column >= job.epilogue.columns) return;
  finish_pair(job.epilogue, sum.x, sum.y, row, column, 0);
  finish_pair(job.epilogue, sum.z, sum.w, row + 8, column, 0);
}

/// The second kernel, behind the first one.
inline void add_second_kernel(Work& work, const Parts& parts, int count, const Epilogue& epilogue) {
  const AddJob job{parts, count, epilogue};
  const LaunchShape shape{
      .grid = static_cast<unsigned>(parts.row_tiles * parts.column_tiles * kConsumerWarps * kPartFragments),
      .block = kAddWarps * device::kWarpThreads,
      .dependent = true};
  work.add(add_parts, shape, job);
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
