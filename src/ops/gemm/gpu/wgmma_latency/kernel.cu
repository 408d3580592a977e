// Version 5: latency first, for products that are one wave of small tiles. What is new against version 1: 64 x 32 of D
// by one warpgroup, so that every multiprocessor has a tile, and eight stages on their way before the first product.
// The threads fetch by cp.async, which needs neither descriptors nor barriers nor a hand-over from a producer. D is
// written from registers.
#include "device/fence.cuh"
#include "ops/gemm/shared/chunk_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::wgmma_latency {
namespace {

constexpr int kRows = 64;
constexpr int kColumns = 32;
constexpr int kThreads = device::kWarpgroupThreads;
constexpr int kStages = 10;          // 120 KiB: more than half, so that dependent launches do not pair up
constexpr int kAhead = kStages - 2;  // the product of the stage before the last may still be running

struct Stage {
  unsigned char a[kRows * kRowBytes];
  unsigned char b[kColumns * kRowBytes];
};
union Storage {
  alignas(1024) Stage stage[kStages];
  WarpStaging staging[kThreads / device::kWarpThreads];
};
static_assert(sizeof(Storage) >= kMoreThanHalf);

struct Job {
  ThreadOperand a;
  ThreadOperand b;
  TileOrder order;
  int k_tiles = 0;
  bool direct = false;
  Epilogue epilogue;
};

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * kRows;
  const int column = tile.column * kColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const int thread = static_cast<int>(threadIdx.x);
  ChunkTile<a_major, kRows, kThreads> a(job.a, job.a.data + batch * job.a.batch_stride, row, 0, job.k_tiles * kDepth,
                                        thread);
  ChunkTile<b_major, kColumns, kThreads> b(job.b, job.b.data + batch * job.b.batch_stride, column, 0,
                                           job.k_tiles * kDepth, thread);
  device::wait_for_previous_kernel();

  const bool whole = a.whole() && b.whole();
  if (whole) {
#pragma unroll
    for (int k_tile = 0; k_tile < kAhead; ++k_tile) {
      if (k_tile < job.k_tiles) {
        a.fetch_whole(shared.stage[k_tile].a);
        b.fetch_whole(shared.stage[k_tile].b);
      }
      device::commit_copies();  // also without copies, so that groups count tiles
    }
  } else {
#pragma unroll 1
    for (int k_tile = 0; k_tile < kAhead; ++k_tile) {
      if (k_tile < job.k_tiles) {
        a.fetch_edge(shared.stage[k_tile].a);
        b.fetch_edge(shared.stage[k_tile].b);
      }
      device::commit_copies();
    }
  }

  float accumulators[kColumns / 2];
  int stage = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
    device::wait_copies<kAhead - 1>();
    device::fence_async_shared();
    __syncthreads();  // the stage is there, and the product of the stage before the last is done in every warp
    multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[stage].a, shared.stage[stage].b,
                                                  k_tile > 0);
    if (k_tile + kAhead < job.k_tiles) {
      Stage& free = shared.stage[stage < kStages - kAhead ? stage + kAhead : stage + kAhead - kStages];
      if (whole) {
        a.fetch_whole(free.a);
        b.fetch_whole(free.b);
      } else {
        a.fetch_edge(free.a);
        b.fetch_edge(free.b);
      }
    }
    device::commit_copies();
    device::wgmma_wait<1>();
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  const int warp = device::warp_index();
  if (job.direct) {
    store_directly<kColumns>(job.epilogue, accumulators, row + warp * kStagedRows, column, batch);
  } else {
    __syncthreads();  // the stages become staging
    write_tile<kColumns>(job.epilogue, accumulators, shared.staging[warp], row + warp * kStagedRows, column, batch);
  }
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config&) {
  const RowMajorCall call(given, arguments);
  const Problem& problem = call.problem;
  const Job job{.a = thread_a(call),
                .b = thread_b(call),
                .order = TileOrder(problem, kRows, kColumns),
                .k_tiles = call.k_tiles(),
                .direct = has_plain_rows(problem),
                .epilogue = call.epilogue()};
  const LaunchShape shape{.grid = job.order.grid(problem.batch),
                          .block = kThreads,
                          .shared_bytes = sizeof(Storage),
                          .dependent = arguments.dependent_launch};
  Work work(kSite, problem.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() { work.add(kernel<T, a, b>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_latency
