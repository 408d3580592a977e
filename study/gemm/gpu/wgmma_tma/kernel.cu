// Version 2: wgmma fed by TMA. New against version 1: one thread fetches a whole stage with an instruction per operand,
// and mbarriers say when a stage is full and when it is free again, instead of barriers of the whole block. Every warp
// still has the same role: the thread that fetches also multiplies, so fetching waits for its own product.
// Two warpgroups compute 128 x 128 of D from a ring of three stages; two blocks share a multiprocessor. Where that
// would leave many multiprocessors without a tile, one warpgroup computes 64 x 128 from four stages of twice the depth.
// Below 2048 descriptors and barriers cost what they save (docs/findings/gemm.md, G1).
#include "ops/gemm/shared/deep_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::wgmma_tma {
namespace {

constexpr int kColumns = 128;

/// Rows of a tile, and what follows from them.
template <int rows>
struct Shape {
  static constexpr int threads = rows / 64 * device::kWarpgroupThreads;
  static constexpr int warps = threads / device::kWarpThreads;
  static constexpr int stages = rows == 64 ? 4 : 3;
  static constexpr int halves = rows == 64 ? kHalves : 1;  // products of kDepth in a stage
  static constexpr int blocks = rows == 64 ? 1 : 2;        // per multiprocessor
};

template <int rows>
struct Storage {
  struct Stage {
    unsigned char a[Shape<rows>::halves][rows * kRowBytes];
    unsigned char b[Shape<rows>::halves][kColumns * kRowBytes];
  };
  union {
    alignas(1024) Stage stage[Shape<rows>::stages];
    WarpStaging staging[Shape<rows>::warps];
  };
  device::Ring<Shape<rows>::stages> ring;
};

struct Job {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  TensorOperand a;
  TensorOperand b;
  Epilogue epilogue;
  TileOrder order;
  int rows = 0;     // of a tile
  int k_tiles = 0;  // stages
  bool direct = false;
};

template <class T, int rows, Major a_major, Major b_major>
__global__ void __launch_bounds__(Shape<rows>::threads, Shape<rows>::blocks) kernel(const __grid_constant__ Job job) {
  constexpr int kStages = Shape<rows>::stages;
  constexpr bool kDeep = Shape<rows>::halves == kHalves;
  Storage<rows>& shared = device::dynamic_shared<Storage<rows>, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * rows;
  const int column = tile.column * kColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const int warp = device::warp_index();
  const int warpgroup = warp / 4;
  const int lane = device::lane_index();
  if (threadIdx.x == 0) {
    device::prefetch_tensor_map(&job.map_a);
    device::prefetch_tensor_map(&job.map_b);
    shared.ring.init(1, Shape<rows>::warps);
  }
  __syncthreads();
  device::wait_for_previous_kernel();

  // Every stage has a warp that fetches for it, so that the first stages are asked for at the same time.
  device::Consumer<kStages> consumer(shared.ring);
  const auto fetch = [&](int k_tile) {
    const int stage = k_tile % kStages;
    if (k_tile >= kStages)
      device::wait(shared.ring.empty[stage], (k_tile / kStages - 1) & 1, {"an empty stage", stage});
    device::arrive_expect_bytes(shared.ring.full[stage], sizeof(shared.stage[stage]));
    device::Barrier& full = shared.ring.full[stage];
    if constexpr (kDeep) {
      load_deep<a_major, rows>(shared.stage[stage].a, job.map_a, job.a, row, k_tile * kDeepDepth, batch, full);
      load_deep<b_major, kColumns>(shared.stage[stage].b, job.map_b, job.b, column, k_tile * kDeepDepth, batch, full);
    } else {
      load_tile<a_major, rows>(shared.stage[stage].a[0], job.map_a, job.a, row, k_tile * kDepth, batch, full);
      load_tile<b_major, kColumns>(shared.stage[stage].b[0], job.map_b, job.b, column, k_tile * kDepth, batch, full);
    }
  };
  if (lane == 0)
    for (int k_tile = warp; k_tile < min(kStages, job.k_tiles); k_tile += Shape<rows>::warps) fetch(k_tile);

  float accumulators[kColumns / 2];
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
    const int stage = consumer.acquire();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < Shape<rows>::halves; ++half)
      multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[stage].a[half] + warpgroup * kPanelBytes,
                                                    shared.stage[stage].b[half], k_tile > 0 || half > 0);
    device::wgmma_wait<Shape<rows>::halves>();
    if (k_tile > 0) {  // the products of the stage before are done
      if (lane == 0) {
        consumer.release(previous);
        const int next = k_tile - 1 + kStages;
        if (warp == previous % Shape<rows>::warps && next < job.k_tiles) fetch(next);
      }
      __syncwarp();
    }
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
  __syncthreads();  // the stages become staging

  if (job.direct)
    store_directly<kColumns>(job.epilogue, accumulators, row + warp * kStagedRows, column, batch);
  else
    write_tile<kColumns>(job.epilogue, accumulators, shared.staging[warp], row + warp * kStagedRows, column, batch);
}

}  // namespace

Work plan(const Problem& given, const Arguments& given_arguments, const Config& config) {
  const RowMajorCall call(given, given_arguments);
  const Problem& problem = call.problem;
  const bool deep = config.rows == 64;
  const MappedOperand a = deep ? map_deep_a(call) : map_a(call, config.rows);
  const MappedOperand b = deep ? map_deep_b(call, kColumns) : map_b(call, kColumns);
  const Job job{.map_a = tma::encode_valid(a.spec, problem.device.index),
                .map_b = tma::encode_valid(b.spec, problem.device.index),
                .a = a.operand,
                .b = b.operand,
                .epilogue = call.epilogue(),
                .order = TileOrder(problem, config.rows, kColumns),
                .k_tiles = call.k_tiles(deep ? kDeepDepth : kDepth),
                .direct = has_plain_rows(problem)};
  Work work(kSite, problem.device);
  const auto add = [&]<int rows>() {
    const LaunchShape shape{.grid = job.order.grid(problem.batch),
                            .block = Shape<rows>::threads,
                            .shared_bytes = shared_bytes(sizeof(Storage<rows>), job.order, problem),
                            .dependent = call.arguments.dependent_launch};
    with_kernel_types(call, [&]<class T, Major a_major, Major b_major>() {
      work.add(kernel<T, rows, a_major, b_major>, shape, job);
    });
  };
  if (deep)
    add.template operator()<64>();
  else
    add.template operator()<128>();
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_tma
