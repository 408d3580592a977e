// Version 2: wgmma fed by TMA. What is new against version 1: one thread fetches a whole stage with an instruction per
// operand, and mbarriers say when a stage is full and when it is free again, instead of barriers of the whole block.
// Every warp still has the same role: the thread that fetches also multiplies, so fetching waits for its own product.
// Two warpgroups compute 128 x 128 of D from a ring of three stages; two blocks share a multiprocessor.
// (4096: 220 us instead of 373. Below 1024 the descriptors and barriers cost more than they save: 256 4.4 instead
// of 3.5.)
#include "ops/gemm/cuda/direct_epilogue.cuh"
#include "ops/gemm/cuda/tensor_maps.cuh"
#include "ops/gemm/cuda/tile_order.cuh"

namespace tmaops::ops::gemm::wgmma_tma {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kRows = 128;
constexpr int kColumns = 128;
constexpr int kThreads = 2 * device::kWarpgroupThreads;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kStages = 3;

struct Stage {
  unsigned char a[kRows * kRowBytes];
  unsigned char b[kColumns * kRowBytes];
};
struct Storage {
  union {
    alignas(1024) Stage stage[kStages];
    WarpStaging staging[kWarps];
  };
  device::Ring<kStages> ring;
};

struct Job {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  TensorOperand a;
  TensorOperand b;
  Epilogue epilogue;
  TileOrder order;
  int k_tiles = 0;
  bool direct = false;
};

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * kRows;
  const int column = tile.column * kColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const int warp = device::warp_index();
  const int warpgroup = warp / 4;
  const bool leads = threadIdx.x == 0;
  if (leads) {
    device::prefetch_tensor_map(&job.map_a);
    device::prefetch_tensor_map(&job.map_b);
    shared.ring.init(1, kWarps);
  }
  __syncthreads();
  device::wait_for_previous_kernel();

  device::Producer<kStages> producer(shared.ring);
  device::Consumer<kStages> consumer(shared.ring);
  const auto fetch = [&](int k_tile) {
    const int stage = producer.acquire();
    producer.expect(stage, sizeof(Stage));
    load_tile<a_major, kRows>(shared.stage[stage].a, job.map_a, job.a, row, k_tile * kDepth, batch,
                              producer.full(stage));
    load_tile<b_major, kColumns>(shared.stage[stage].b, job.map_b, job.b, column, k_tile * kDepth, batch,
                                 producer.full(stage));
  };
  if (leads)
    for (int k_tile = 0; k_tile < min(kStages, job.k_tiles); ++k_tile) fetch(k_tile);

  float sums[kColumns / 2];
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
    const int stage = consumer.acquire();
    __syncwarp();
    multiply_stage<T, kColumns, a_major, b_major>(sums, shared.stage[stage].a + warpgroup * kPanelBytes,
                                                  shared.stage[stage].b, k_tile > 0);
    device::wgmma_wait<1>();
    if (k_tile > 0) {  // the product of the stage before is done
      if (device::lane_index() == 0) consumer.release(previous);
      const int next = k_tile - 1 + kStages;
      if (leads && next < job.k_tiles) fetch(next);
      __syncwarp();
    }
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  __syncthreads();  // the stages become staging

  if (job.direct)
    store_directly<kColumns>(job.epilogue, sums, row + warp * kStagedRows, column, batch);
  else
    write_tile<kColumns>(job.epilogue, sums, shared.staging[warp], row + warp * kStagedRows, column, batch);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem, device); !support) return support;
  return supports_grid(problem, kRows, kColumns);
}

std::shared_ptr<const void> prepare(const Problem& given, const Arguments& given_arguments) {
  const RowMajorCall call(given, given_arguments);
  const MappedOperand a = map_a(call, kRows);
  const MappedOperand b = map_b(call, kColumns);
  return std::make_shared<Job>(Job{.map_a = tma::encode(a.spec, given.device.index),
                                   .map_b = tma::encode(b.spec, given.device.index),
                                   .a = a.operand,
                                   .b = b.operand,
                                   .epilogue = call.epilogue(),
                                   .order = TileOrder(call.problem, kRows, kColumns),
                                   .k_tiles = call.k_tiles(),
                                   .direct = stores_directly(call.epilogue())});
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& job = *static_cast<const Job*>(arguments.prepared.get());
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = job.order.grid(problem.batch),
                            .block = dim3(kThreads),
                            .shared_bytes = shared_bytes(sizeof(Storage), job.order, problem),
                            .dependent = arguments.dependent_launch};
  with_kernel_types(problem, [&]<class T, Major a, Major b>() {
    launch_kernel<kernel<T, a, b>>("gemm: wgmma_tma", config, stream, job);
  });
}

}  // namespace tmaops::ops::gemm::wgmma_tma
