// Version 4: blocks that stay. What is new against version 3: one block per multiprocessor computes tile after tile, so
// that the loads of the next tile and the stores of the last run beside the epilogue; two blocks of a cluster compute
// 256 x 256 of D and send each other their half of B (multicast), which takes a third off the bytes that leave the L2.
// (4096: 206 us instead of 211; 4096x24576x1536: 486 instead of 515. Where a launch is one wave it only costs.)
#include <algorithm>

#include "device/cluster.cuh"
#include "ops/gemm/cuda/specialized.cuh"

namespace tmaops::ops::gemm::wgmma_persistent {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kCluster = 2;
constexpr int kColumns = 256;
constexpr int kClusterRows = kCluster * kSpecializedRows;
constexpr int kShare = kColumns / kCluster;  // columns of B that each block fetches for both
constexpr int kGroup = 4;                    // cluster rows that are walked column by column
constexpr std::uint16_t kBoth = (1 << kCluster) - 1;

using Storage = SpecializedStorage<kColumns>;
constexpr int kStages = Storage::stages;

/// The walk of a cluster over its tiles: groups of kGroup cluster rows, column by column, batch after batch.
struct Walk {
  int cluster_rows = 0;
  int tile_columns = 0;
  int tiles = 0;  // of clusters, over all batches

  __device__ __forceinline__ void locate(int tile, int& row, int& column, int& batch) const {
    const int in_batch = cluster_rows * tile_columns;
    batch = tile / in_batch;
    tile -= batch * in_batch;
    const int group = tile / (kGroup * tile_columns);
    tile -= group * kGroup * tile_columns;
    const int rows = min(kGroup, cluster_rows - group * kGroup);
    column = tile / rows * kColumns;
    row = (group * kGroup + tile % rows) * kClusterRows;
  }
};

struct Job {
  SpecializedJob parts;
  Walk walk;
};

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kSpecializedThreads, 1) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const int warp = device::warp_index();
  const int rank = static_cast<int>(device::cluster_rank());
  const int first = static_cast<int>(blockIdx.x) / kCluster;
  const int step = static_cast<int>(gridDim.x) / kCluster;
  if (threadIdx.x == 0) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    shared.ring.init(1, kCluster * kConsumerWarps);
  }
  device::cluster_arrive_relaxed();
  device::cluster_wait();
  device::wait_for_previous_kernel();

  if (warp < 4) {
    device::decrease_registers<kProducerRegisters>();
    if (warp == 0 && device::elect_one()) {
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int tile = first; tile < job.walk.tiles; tile += step) {
        int row, column, batch;
        job.walk.locate(tile, row, column, batch);
        row += rank * kSpecializedRows;
        column += rank * kShare;
#pragma unroll 1
        for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
          const int stage = producer.acquire();  // free in both blocks
          producer.expect(stage, sizeof(Storage::Stage));
          load_tile<a_major, kSpecializedRows>(shared.stage[stage].a, parts.map_a, parts.a, row, k_tile * kDepth, batch,
                                               producer.full(stage));
          load_tile<b_major, kShare>(shared.stage[stage].b + rank * kShare * kRowBytes, parts.map_b, parts.b, column,
                                     k_tile * kDepth, batch, producer.full(stage), kBoth);
        }
      }
    }
  } else {
    device::increase_registers<kConsumerRegisters>();
    const int consumer_warp = warp - 4;
    device::Consumer<kStages> consumer(shared.ring);
    const int lane = device::lane_index();
    float sums[kColumns / 2];
#pragma unroll 1
    for (int tile = first; tile < job.walk.tiles; tile += step) {
      int row, column, batch;
      job.walk.locate(tile, row, column, batch);
      multiply_tile<T, kColumns, a_major, b_major>(sums, shared.stage, consumer, parts.k_tiles, consumer_warp / 4,
                                                   [&](int stage) {
                                                     if (lane < kCluster)
                                                       consumer.release_to(stage, static_cast<std::uint32_t>(lane));
                                                   });
      finish_tile<kColumns>(parts, sums, shared.staging[consumer_warp],
                            row + rank * kSpecializedRows + consumer_warp * kStagedRows, column, batch);
    }
    if (lane == 0) device::wait_stores_read();
  }
  __syncwarp();
  device::cluster_sync();  // the other block still signals this one's barriers
}

struct Prepared {
  Job job;
  int clusters = 0;  // of the grid
};

Walk walk_of(const Problem& given) {
  const Problem& problem = given.d.order == Order::column ? transposed(given) : given;
  Walk walk;
  walk.cluster_rows = static_cast<int>((problem.m + kClusterRows - 1) / kClusterRows);
  walk.tile_columns = static_cast<int>((problem.n + kColumns - 1) / kColumns);
  walk.tiles = static_cast<int>(
      std::min<std::int64_t>(std::int64_t{walk.cluster_rows} * walk.tile_columns * problem.batch, INT32_MAX));
  return walk;
}

/// Clusters that run at the same time: not every pair of multiprocessors can form one.
template <class T, Major a_major, Major b_major>
int resident_clusters() {
  const auto* function = reinterpret_cast<const void*>(&kernel<T, a_major, b_major>);
  check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage)),
             "gemm: wgmma_persistent");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kCluster);
  config.blockDim = dim3(kSpecializedThreads);
  config.dynamicSmemBytes = sizeof(Storage);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, function, &config), "gemm: wgmma_persistent");
  return clusters;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem, device); !support) return support;
  if (walk_of(problem).tiles == INT32_MAX || problem.batch > INT32_MAX)
    return Support::no("needs fewer than 2^31 tiles");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& given, const Arguments& arguments) {
  const RowMajorCall call(given, arguments);
  const CurrentDevice current(given.device.index);
  auto prepared = std::make_shared<Prepared>();
  prepared->job = {.parts = make_specialized_job(call, kColumns, kSpecializedRows, kShare), .walk = walk_of(given)};
  with_kernel_types(given, [&]<class T, Major a, Major b>() { prepared->clusters = resident_clusters<T, a, b>(); });
  prepared->clusters = std::min(prepared->clusters, prepared->job.walk.tiles);
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(kCluster * prepared.clusters)),
                            .block = dim3(kSpecializedThreads),
                            .shared_bytes = sizeof(Storage),
                            .cluster = kCluster,
                            .dependent = arguments.dependent_launch};
  with_kernel_types(problem, [&]<class T, Major a, Major b>() {
    launch_kernel<kernel<T, a, b>>("gemm: wgmma_persistent", config, stream, prepared.job);
  });
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
