// Whole tiles of K = 1024, 64 x 128: as whole_tiles.cuh, with a warp that fetches by TMA. Copies by cp.async hold up
// the warp that issues them for as long as the multiprocessor takes to ask for their lines, and a warpgroup that
// multiplies besides stands still meanwhile: 290 to 317 cycles per k-tile, of which the product takes 255. But they are
// on their way before barriers and maps are ready, so the first k-tiles still come by cp.async, and the fetching warp
// starts behind them, so that they are served first. (H200: CR 5.23 to 4.70 us, RC 5.02 to 4.60.)
#pragma once

#include "device/pipeline.cuh"
#include "ops/gemm/cuda/tensor_maps.cuh"
#include "ops/gemm/cuda/whole_tiles.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kMappedColumns = 128;
inline constexpr int kMappedTiles = 16;  // of k
inline constexpr int kMappedStages = 6;
inline constexpr int kCopiedTiles = 2;  // by cp.async
inline constexpr int kMappedThreads = kWholeThreads + device::kWarpThreads;
inline constexpr int kMappedReady = 1;  // named barriers
inline constexpr int kCopiesIssued = 2;
inline constexpr int kMultiplyOnly = 3;

struct MappedStorage {
  struct Stage {
    unsigned char a[kWholeRows * kRowBytes];
    unsigned char b[kMappedColumns * kRowBytes];
  };
  alignas(1024) Stage stage[kMappedStages];
  device::Ring<kMappedStages> ring;
  std::uint32_t spare[kWholeThreads];
};
static_assert(sizeof(MappedStorage) >= kMoreThanHalf);

struct MappedJob {
  tma::TensorMap map_a, map_b;
  WholeJob whole;
};

/// Fetches all k-tiles from kCopiedTiles on; one thread.
template <Major a_major, Major b_major>
__device__ __forceinline__ void fetch_mapped(const MappedJob& job, MappedStorage& shared, std::uint32_t first_row,
                                             std::uint32_t first_column) {
  const auto row = static_cast<std::int32_t>(first_row);
  const auto column = static_cast<std::int32_t>(first_column);
  device::RingPosition<kMappedStages> position;
  position.advance(kCopiedTiles);
#pragma unroll 1
  for (std::int32_t k_tile = kCopiedTiles; k_tile < kMappedTiles; ++k_tile) {
    const int stage = position.stage();
    device::Barrier& full = shared.ring.full[stage];
    device::wait(shared.ring.empty[stage], position.phase() ^ 1u, {"an empty stage", stage});
    position.advance();
    device::arrive_expect_bytes(full, sizeof(MappedStorage::Stage));
    const std::int32_t k = k_tile * kDepth;
    if constexpr (b_major == Major::mn)
      device::tensor_load<3>(shared.stage[stage].b, &job.map_b, {0, k, column / 64}, full);
    else
      device::tensor_load<5>(shared.stage[stage].b, &job.map_b, {k, 0, 0, 0, column / 32}, full);
    constexpr bool kAlongK = a_major == Major::k;
    device::tensor_load<2>(shared.stage[stage].a, &job.map_a, {kAlongK ? k : row, kAlongK ? row : k}, full);
  }
}

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kMappedThreads, 1) mapped_kernel(const __grid_constant__ MappedJob job) {
  constexpr int kColumns = kMappedColumns;
  constexpr int kStages = kMappedStages;
  MappedStorage& shared = device::dynamic_shared<MappedStorage, wgmma_small::kSite.smem>();
  device::let_next_kernel_start();
  const WholePosition tile = whole_position<kColumns, kMappedTiles>();
  if (threadIdx.x >= kWholeThreads) {
    const bool fetches = threadIdx.x == kWholeThreads;
    if (fetches) {
      device::prefetch_tensor_map(&job.map_b);
      device::prefetch_tensor_map(&job.map_a);
      shared.ring.init(1, kWholeThreads / device::kWarpThreads);
    }
    __syncwarp();
    device::arrive_threads<kMappedReady>(kMappedThreads);
    device::wait_for_previous_kernel();
    device::sync_threads<kCopiesIssued>(kMappedThreads);
    if (fetches) fetch_mapped<a_major, b_major>(job, shared, tile.row, tile.column);
    return;
  }

  constexpr bool kPermuted = b_major == Major::k;
  WholeTile<a_major, kWholeRows, 0, false> a(job.whole.a, job.whole.a_stride, tile.row, threadIdx.x);
  WholeTile<b_major, kColumns, 0, kPermuted> b(job.whole.b, job.whole.b_stride, tile.column, threadIdx.x);
  a.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
#pragma unroll
  for (int k_tile = 0; k_tile < kCopiedTiles; ++k_tile) {
    a.fetch(shared.stage[k_tile].a, k_tile);
    b.fetch(shared.stage[k_tile].b, k_tile);
    device::commit_copies();
  }
  device::arrive_threads<kCopiesIssued>(kMappedThreads);

  float sums[kColumns / 2];
  for_each_index<kMappedTiles>([&](auto index) {
    constexpr int k_tile = decltype(index)::value;
    constexpr int stage = k_tile % kStages;
    if constexpr (k_tile < kCopiedTiles) {
      device::wait_copies<kCopiedTiles - 1 - k_tile>();
      device::fence_async_shared();
      if constexpr (k_tile + 1 < kCopiedTiles)
        device::sync_threads<kMultiplyOnly>(kWholeThreads);
      else
        device::sync_threads<kMappedReady>(kMappedThreads);
    } else {
      // Of a stage that began with a tile by cp.async, TMA's first tile is the second.
      constexpr int phase = k_tile / kStages - (stage < kCopiedTiles ? 1 : 0);
      device::wait(shared.ring.full[stage], phase % 2, {"a tile by TMA", k_tile});
      __syncwarp();
    }
    multiply_stage<T, kColumns, a_major, b_major>(sums, shared.stage[stage].a, shared.stage[stage].b, k_tile > 0);
    device::wgmma_wait<1>();
    constexpr int done = k_tile - 1;
    if constexpr (done >= 0 && done + kStages < kMappedTiles)
      if (threadIdx.x % device::kWarpThreads == 0) device::arrive(shared.ring.empty[done % kStages]);
  });
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  store_whole<T, kColumns, kPermuted, false>(job.whole.d, job.whole.d_stride, sums, tile.row, tile.column);
}

/// What the maps of A and B have in common.
inline tma::TensorMapSpec map_whole(const MatrixLayout& layout, const void* data) {
  tma::TensorMapSpec spec;
  spec.dtype = tma::element_type(layout.dtype);
  spec.address = reinterpret_cast<std::uintptr_t>(data);
  spec.swizzle = tma::Swizzle::b128;
  return spec;
}

inline MappedJob make_mapped_job(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  tma::TensorMapSpec a = map_whole(problem.a, call.arguments.a);
  const bool a_along_k = major_of_a(problem) == Major::k;
  a.dims = {a_along_k ? problem.k : problem.m, a_along_k ? problem.m : problem.k};
  a.strides = {2 * problem.a.leading_dimension()};
  a.box = {64, 64};
  static_assert(kWholeRows == 64 && kDepth == 64);
  tma::TensorMapSpec b = map_whole(problem.b, call.arguments.b);
  const std::int64_t line = 2 * problem.b.leading_dimension();
  if (major_of_b(problem) == Major::mn) {
    b.dims = {64, problem.k, problem.n / 64};
    b.strides = {line, kRowBytes};
    b.box = {64, kDepth, kMappedColumns / 64};
  } else {  // columns in the order of column_in_row(): e, q and j are dimensions of their own
    b.dims = {problem.k, 2, 4, 4, problem.n / 32};
    b.strides = {line, 8 * line, 2 * line, 32 * line};
    b.box = {kDepth, 2, 4, 4, kMappedColumns / 32};
  }
  return {.map_a = tma::encode(a, problem.device.index),
          .map_b = tma::encode(b, problem.device.index),
          .whole = make_whole_job(call)};
}

}  // namespace tmaops::ops::gemm::cuda
