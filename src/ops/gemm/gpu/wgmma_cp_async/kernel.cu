// Version 1: wgmma fed by the threads themselves. One warpgroup computes 64 x 128 of D from a ring of four stages,
// which it fills by cp.async two stages ahead of the product. Two blocks share a multiprocessor, so that the loads of
// one hide the epilogue of the other. It takes every problem: any strides, any alignment, K = 0.
#include "device/fence.cuh"
#include "ops/gemm/shared/chunk_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/thread_loads.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::wgmma_cp_async {
namespace {

constexpr int kRows = 64;
constexpr int kColumns = 128;
constexpr int kThreads = device::kWarpgroupThreads;
constexpr int kStages = 4;
constexpr int kAhead = kStages - 2;  // the product of the stage before the last may still be running

struct Stage {
  unsigned char a[kRows * kRowBytes];
  unsigned char b[kColumns * kRowBytes];
};
union Storage {
  alignas(1024) Stage stage[kStages];
  WarpStaging staging[kThreads / device::kWarpThreads];
};

struct Job : ThreadJob {
  bool direct = false;
};

/// The 64 x 128 product over all k.
template <class T, Major a_major, Major b_major, class TileA, class TileB>
__device__ __forceinline__ void multiply_tiles(float (&accumulators)[kColumns / 2], Storage& shared, TileA a, TileB b,
                                               int k_tiles) {
  const auto fetch = [&](int k_tile) {  // in order
    if (k_tile < k_tiles) {
      a.fetch(shared.stage[k_tile % kStages].a);
      b.fetch(shared.stage[k_tile % kStages].b);
    }
    device::commit_copies();  // also without copies, so that groups count tiles
  };
#pragma unroll 1
  for (int k_tile = 0; k_tile < kAhead; ++k_tile) fetch(k_tile);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    device::wait_copies<kAhead - 1>();
    device::fence_async_shared();
    __syncthreads();  // the stage is there, and the product of the stage before the last is done in every warp
    multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[k_tile % kStages].a,
                                                  shared.stage[k_tile % kStages].b, true);
    fetch(k_tile + kAhead);
    device::wgmma_wait<1>();
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
}

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * kRows;
  const int column = tile.column * kColumns;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();
  device::wait_for_previous_kernel();

  for (int p = static_cast<int>(blockIdx.z); p < job.batch; p += static_cast<int>(gridDim.z)) {
    const unsigned char* const a = job.a.data + p * job.a.batch_stride;
    const unsigned char* const b = job.b.data + p * job.b.batch_stride;
    float accumulators[kColumns / 2] = {};
    if (job.chunks) {
      const int k_end = job.k_tiles * kDepth;
      multiply_tiles<T, a_major, b_major>(
          accumulators, shared, ChunkTile<a_major, kRows, kThreads>(job.a, a, row, 0, k_end, thread),
          ChunkTile<b_major, kColumns, kThreads>(job.b, b, column, 0, k_end, thread), job.k_tiles);
    } else {
      multiply_tiles<T, a_major, b_major>(
          accumulators, shared, ThreadTile<a_major, kRows, kThreads>(job.a, a, row, thread),
          ThreadTile<b_major, kColumns, kThreads>(job.b, b, column, thread), job.k_tiles);
    }
    __syncthreads();  // the stages become staging, or the next batch's

    if (job.direct) {
      store_directly<kColumns>(job.epilogue, accumulators, row + warp * kStagedRows, column, p);
    } else {
      write_tile<kColumns>(job.epilogue, accumulators, shared.staging[warp], row + warp * kStagedRows, column, p);
      __syncthreads();
    }
  }
}

}  // namespace

Work plan(const Problem& given, const Arguments& given_arguments, const Config&) {
  const RowMajorCall call(given, given_arguments);
  const Problem& problem = call.problem;
  const Job job{ThreadJob(call, kRows, kColumns), has_plain_rows(problem)};
  const LaunchShape shape{.grid = job.order.grid(problem.batch),
                          .block = kThreads,
                          .shared_bytes = shared_bytes(sizeof(Storage), job.order, problem),
                          .dependent = call.arguments.dependent_launch};
  Work work(kSite, problem.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() { work.add(kernel<T, a, b>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_cp_async
