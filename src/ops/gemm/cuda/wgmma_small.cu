// Version 5: latency first, for products that are one wave of small tiles. What is new against the others: 64 x 32 of D
// by one warpgroup, so that every multiprocessor has a tile; the threads fetch by cp.async again, which needs neither
// descriptors nor barriers nor a hand-over from a producer, and eight stages are on their way before the first product;
// D is written from registers. Longer K: deep_stages.cuh. Whole tiles of a K of 256 or 512: whole_tiles.cuh, of 1024:
// mapped_tiles.cuh. Rows that do not start at lines of 128 bytes: line_tiles.cuh.
// (256: 1.53 us instead of 3.1 of version 1; 1024: 4.75 instead of 7.3 of version 3; 64x4096x7168: 17 instead of 35,
// and 13 with the same weights again.)
#include <optional>

#include "device/fence.cuh"
#include "ops/gemm/cuda/deep_stages.cuh"
#include "ops/gemm/cuda/line_tiles.cuh"
#include "ops/gemm/cuda/mapped_tiles.cuh"
#include "ops/gemm/cuda/whole_tiles.cuh"
#include "ops/gemm/tiling.hpp"

namespace tmaops::ops::gemm::wgmma_small {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kRows = 64;
constexpr int kColumns = 32;
constexpr int kNarrow = 16;  // columns, of the smallest products
constexpr int kThreads = device::kWarpgroupThreads;
constexpr int kStages = 10;          // 120 KiB: more than half, so that dependent launches do not pair up
constexpr int kAhead = kStages - 2;  // the product of the stage before the last may still be running
constexpr int kSplits = 2;

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

  float sums[kColumns / 2];
  int stage = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
    device::wait_copies<kAhead - 1>();
    device::fence_async_shared();
    __syncthreads();  // the stage is there, and the product of the stage before the last is done in every warp
    multiply_stage<T, kColumns, a_major, b_major>(sums, shared.stage[stage].a, shared.stage[stage].b, k_tile > 0);
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
  device::pin_registers(sums);

  const int warp = device::warp_index();
  if (job.direct) {
    store_directly<kColumns>(job.epilogue, sums, row + warp * kStagedRows, column, batch);
  } else {
    __syncthreads();  // the stages become staging
    write_tile<kColumns>(job.epilogue, sums, shared.staging[warp], row + warp * kStagedRows, column, batch);
  }
}

/// A kernel of whole_tiles.cuh or mapped_tiles.cuh.
struct WholeKernel {
  int columns = 0;  // 0: none
  int k_tiles = 0;
  bool square = false;
};

/// Calls fn.template operator()<columns, k_tiles, square>() for a kernel.
template <class Fn>
void with_whole_kernel(const WholeKernel& kernel, const Fn& fn) {
  const auto is = [&](int columns, int k_tiles, bool square) {
    return kernel.columns == columns && kernel.k_tiles == k_tiles && kernel.square == square;
  };
  if (is(kNarrow, 4, false)) fn.template operator()<kNarrow, 4, false>();
  if (is(kColumns, 4, false)) fn.template operator()<kColumns, 4, false>();
  if (is(kColumns, 4, true)) fn.template operator()<kColumns, 4, true>();
  if (is(kColumns, 8, false)) fn.template operator()<kColumns, 8, false>();
  if (is(kMappedColumns, kMappedTiles, false)) fn.template operator()<kMappedColumns, kMappedTiles, false>();
}

/// The kernel of its own that a product has; `columns`: those of its tiles in the kernels for all problems. K = 256 has
/// 64 x 16 where that is one wave: 40 KiB per block instead of 48 (256: 1.59 instead of 1.65 us). But with B contiguous
/// along N its rows are 32 bytes, for which the L2 takes as long as for 64, so there 64 x 32, and then known strides
/// matter (square 1.63 us, with dependent launch 1.29; not known 1.68, 1.33; 64 x 16 1.65, 1.33).
WholeKernel whole_kernel_of(const RowMajorCall& call, int columns) {
  const Problem& problem = call.problem;
  WholeKernel kernel{.columns = columns, .k_tiles = call.k_tiles()};
  if (columns == kColumns && kernel.k_tiles == 4) {
    kernel.square = major_of_b(problem) == Major::mn && is_square(problem);
    const std::int64_t narrow = problem.m / kRows * (problem.n / kNarrow);
    if (!kernel.square && narrow <= device_info(problem.device).multiprocessors) kernel.columns = kNarrow;
  }
  bool fits = false;
  with_whole_kernel(kernel, [&]<int width, int k_tiles, bool square>() { fits = cuts_whole<width, k_tiles>(call); });
  return fits ? kernel : WholeKernel();
}

struct Prepared {
  WholeKernel whole;
  WholeJob whole_job;
  std::optional<MappedJob> mapped;  // instead of whole_job
  Job job;                          // 64 x 32
  DeepJob deep;                     // 64 x 128, or 64 x 64 with K split
  LineJob line_job;
  bool lines = false;  // 128 x 64, each eighth row
  int columns = 0;
};

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, kRows, kColumns);
}

std::shared_ptr<const void> prepare(const Problem& given, const Arguments& arguments) {
  const RowMajorCall call(given, arguments);
  const Tiling& tiling = tiling_of("wgmma_small", call.problem, call.arguments);
  auto prepared = std::make_shared<Prepared>();
  prepared->columns = tiling.columns;
  prepared->whole = whole_kernel_of(call, tiling.columns);
  if (prepared->whole.columns != 0) {
    if (prepared->whole.k_tiles == kMappedTiles)
      prepared->mapped = make_mapped_job(call);
    else
      prepared->whole_job = make_whole_job(call);
    return prepared;
  }
  prepared->lines = tiling.row_step > 1;
  if (prepared->lines)
    prepared->line_job = make_line_job(call);
  else if (tiling.columns == kColumns)
    prepared->job = {.a = thread_a(call),
                     .b = thread_b(call),
                     .order = TileOrder(call.problem, kRows, kColumns),
                     .k_tiles = call.k_tiles(),
                     .direct = stores_directly(call.epilogue()),
                     .epilogue = call.epilogue()};
  else
    prepared->deep = make_deep_job(call, tiling.columns);
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  const CurrentDevice current(problem.device.index);
  LaunchConfig config{.dependent = arguments.dependent_launch};
  if (prepared.whole.columns != 0) {
    const bool column_major = problem.d.order == Order::column;
    with_kernel_types(problem, [&]<class T, Major a, Major b>() {
      with_whole_kernel(prepared.whole, [&]<int columns, int k_tiles, bool square>() {
        config.grid =
            whole_grid<columns, k_tiles>(column_major ? problem.n : problem.m, column_major ? problem.m : problem.n);
        if constexpr (k_tiles == kMappedTiles) {
          config.block = dim3(kMappedThreads);
          config.shared_bytes = sizeof(MappedStorage);
          launch_kernel<mapped_kernel<T, a, b>>(kSite, config, stream, *prepared.mapped);
        } else if constexpr (!square || b == Major::mn) {  // whole_kernel_of() asks for no other
          config.block = dim3(kWholeThreads);
          config.shared_bytes = WholeStorage<columns, k_tiles>::bytes;
          launch_kernel<whole_kernel<T, columns, k_tiles, square, a, b>>(kSite, config, stream, prepared.whole_job);
        }
      });
    });
    return;
  }
  if (prepared.lines) {
    config.grid = line_grid(prepared.line_job);
    config.block = dim3(kLineThreads);
    config.shared_bytes = sizeof(LineStorage);
    const auto run = [&]<class T>() { launch_kernel<line_kernel<T>>(kSite, config, stream, prepared.line_job); };
    if (problem.a.dtype == DType::f16)
      run.template operator()<__half>();
    else
      run.template operator()<__nv_bfloat16>();
    return;
  }
  if (prepared.columns == kColumns) {
    config.grid = prepared.job.order.grid(problem.batch);
    config.block = dim3(kThreads);
    config.shared_bytes = sizeof(Storage);
    with_kernel_types(problem, [&]<class T, Major a, Major b>() {
      launch_kernel<kernel<T, a, b>>(kSite, config, stream, prepared.job);
    });
    return;
  }
  config.grid = prepared.deep.order.grid(problem.batch);
  config.block = dim3(kDeepThreads);
  with_kernel_types(problem, [&]<class T, Major a, Major b>() {
    if (prepared.columns == 128) {
      config.shared_bytes = sizeof(DeepStorage<128, 1>);
      launch_kernel<deep_kernel<T, 128, 1, a, b>>(kSite, config, stream, prepared.deep);
    } else {
      config.grid.x *= kSplits;
      config.cluster = kSplits;
      config.shared_bytes = sizeof(DeepStorage<64, kSplits>);
      launch_kernel<deep_kernel<T, 64, kSplits, a, b>>(kSite, config, stream, prepared.deep);
    }
  });
}

}  // namespace tmaops::ops::gemm::wgmma_small
