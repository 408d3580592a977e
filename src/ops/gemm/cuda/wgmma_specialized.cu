// Version 3: roles. What is new against version 2: a warp that does nothing but fetch, so that fetching never waits for
// a product; two consumer warpgroups, which get its warpgroup's registers (setmaxnreg) for 128 x 256 of D; a ring of
// 192 KiB; D written by the copy engine from the stages that the last products have left. Widths between 128
// and 256 where one wave of them fills the chip better (1536: 13.0 us instead of 17.7). One block per multiprocessor
// and tile. 2048: 24.3 us instead of 26.6. Rows that do not start at lines of 128 bytes have a tile of their own
// (cluster_tile.cuh; 1000: 6.6 us instead of 9.5).
#include <algorithm>

#include "ops/gemm/cuda/cluster_tile.cuh"
#include "ops/gemm/cuda/specialized.cuh"
#include "ops/gemm/tiling.hpp"

namespace tmaops::ops::gemm::wgmma_specialized {
namespace {

/// 168 to 204 KiB of stages.
template <int n>
struct Storage {
  struct Stage {
    unsigned char a[kSpecializedRows * kRowBytes];
    unsigned char b[n * kRowBytes];
  };
  static constexpr int stages = std::min(6, (208 << 10) / static_cast<int>(sizeof(Stage)));
  alignas(1024) Stage stage[stages];
  device::Ring<stages> ring;

  /// Where warpgroup `group`'s rows of A lie in a stage. When the last product is done they are its own, 8 KiB a stage.
  __device__ __forceinline__ unsigned char* rows(int stage_index, int group) {
    return stage[stage_index].a + group * kPanelBytes;
  }
};

struct Job {
  SpecializedJob parts;
  TileOrder order;
};

/// A warpgroup's 64 x n product over all k. A stage is given back one product late, so that the tensor cores always
/// have the next one.
template <class T, int n, Major a_major, Major b_major>
__device__ __forceinline__ void multiply_tile(float (&sums)[n / 2], Storage<n>& shared, int k_tiles, int group) {
  device::Consumer<Storage<n>::stages> consumer(shared.ring);
  // The second warpgroup begins a stage later and so ends later: the first one's epilogue is behind its products (2048:
  // 0.2 to 0.8 % faster). Not where B is contiguous along N: 0.5 % slower.
  if (n == 256 && b_major == Major::k && group == 1 && k_tiles > 1)
    device::wait(shared.ring.full[1], 0, {"the second stage", 1});
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const int current = consumer.acquire();
    __syncwarp();
    multiply_stage<T, n, a_major, b_major>(sums, shared.rows(current, group), shared.stage[current].b, k_tile > 0);
    device::wgmma_wait<1>();
    if (k_tile > 0 && device::lane_index() == 0) consumer.release(previous);
    previous = current;
  }
  device::wgmma_wait<0>();
  device::pin_registers(sums);
}

/// All threads of one of the two consumer warpgroups.
__device__ __forceinline__ void sync_group(int group) {
  if (group == 0)
    device::sync_threads<1>(device::kWarpgroupThreads);
  else
    device::sync_threads<2>(device::kWarpgroupThreads);
}

/// A consumer warp's part of the tile at (row, column), to D, by way of the stages.
template <int n>
__device__ __forceinline__ void finish_tile(const SpecializedJob& job, const float (&sums)[n / 2], Storage<n>& shared,
                                            int row, int column, int batch) {
  const int group = device::warp_index() / 4 - 1;
  const int warp = device::warp_index() % 4;
  sync_group(group);  // no warp's products read these stages any more
  if (job.tensor_store) {
    constexpr int pieces = StorePieces<n>::pieces;
    constexpr int in_stage = kPanelBytes / StorePieces<n>::bytes;
    static_assert(4 * pieces <= in_stage * Storage<n>::stages);
    const auto piece_in_stage = [&](int piece) {
      const int number = 4 * piece + warp;
      return shared.rows(number / in_stage, group) + number % in_stage * StorePieces<n>::bytes;
    };
    store_tile<n, pieces>(job.map_d, job.epilogue, sums, piece_in_stage, row, column, batch);
    if (device::lane_index() == 0) device::wait_stores_read();
  } else {
    static_assert(2 * sizeof(WarpStaging) <= kPanelBytes);
    auto* staging = reinterpret_cast<WarpStaging*>(shared.rows(warp / 2, group));
    write_tile<n>(job.epilogue, sums, staging[warp % 2], row, column, batch);
  }
}

template <class T, int n, Major a_major, Major b_major>
__global__ void __launch_bounds__(kSpecializedThreads, 1) kernel(const __grid_constant__ Job job) {
  using Shared = Storage<n>;
  Shared& shared = device::dynamic_shared<Shared>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = tile.row * kSpecializedRows;
  const int column = tile.column * n;
  const int batch = static_cast<int>(blockIdx.z);
  const int warp = device::warp_index();
  const bool fetches = warp == 0 && device::elect_one();
  const auto load = [&](int stage, int k_tile) {
    device::Barrier& full = shared.ring.full[stage];
    device::arrive_expect_bytes(full, sizeof(typename Shared::Stage));
    load_tile<a_major, kSpecializedRows>(shared.stage[stage].a, parts.map_a, parts.a, row, k_tile * kDepth, batch,
                                         full);
    load_tile<b_major, n>(shared.stage[stage].b, parts.map_b, parts.b, column, k_tile * kDepth, batch, full);
  };
  if (fetches) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    shared.ring.init(1, kConsumerWarps);
  }
  device::wait_for_previous_kernel();
  if (fetches) load(0, 0);  // on its way while the block gathers
  __syncthreads();

  if (warp < 4) {
    device::decrease_registers<kProducerRegisters>();
    if (fetches) {
      device::Producer<Shared::stages> producer(shared.ring);
#pragma unroll 1
      for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
        const int stage = producer.acquire();
        if (k_tile > 0) load(stage, k_tile);
      }
    }
  } else {
    device::increase_registers<kConsumerRegisters>();
    const int consumer_warp = warp - 4;
    float sums[n / 2];
    multiply_tile<T, n, a_major, b_major>(sums, shared, parts.k_tiles, consumer_warp / 4);
    finish_tile<n>(parts, sums, shared, row + consumer_warp * kStagedRows, column, batch);
  }
}

/// Calls fn.template operator()<T, n, major of A, major of B>().
template <class Fn>
void with_kernel(const Problem& problem, int columns, const Fn& fn) {
  with_kernel_types(problem, [&]<class T, Major a, Major b>() {
    if (columns == 256) return fn.template operator()<T, 256, a, b>();
    if constexpr (b == Major::k) {
      if (columns == 208) return fn.template operator()<T, 208, a, b>();
      if (columns == 176) return fn.template operator()<T, 176, a, b>();
      if (columns == 144) return fn.template operator()<T, 144, a, b>();
    } else {
      if (columns == 192) return fn.template operator()<T, 192, a, b>();
    }
    fn.template operator()<T, 128, a, b>();
  });
}

struct Prepared {
  Job job;
  ClusterJob cluster_job;
  int columns = 0;
  int cluster = 1;
};

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem, device); !support) return support;
  return supports_grid(problem, kSpecializedRows, 128);
}

std::shared_ptr<const void> prepare(const Problem& given, const Arguments& arguments) {
  const RowMajorCall call(given, arguments);
  auto prepared = std::make_shared<Prepared>();
  const Tiling& tiling = tiling_of("wgmma_specialized", call.problem, call.arguments);
  prepared->columns = tiling.columns;
  prepared->cluster = tiling.share;
  if (prepared->cluster > 1) {
    prepared->cluster_job = make_cluster_job(call);
    return prepared;
  }
  with_kernel(given, prepared->columns, [&]<class T, int n, Major a, Major b>() {
    prepared->job = {.parts = make_specialized_job<n>(call, n), .order = TileOrder(call.problem, kSpecializedRows, n)};
  });
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  const CurrentDevice current(problem.device.index);
  if (prepared.cluster > 1) {
    const Epilogue& d = prepared.cluster_job.parts.epilogue;
    const int column_tiles = (d.columns + kClusterColumns - 1) / kClusterColumns;
    const LaunchConfig config{
        .grid = dim3(static_cast<unsigned>(kClusterBlocks * prepared.cluster_job.row_clusters * column_tiles), 1,
                     static_cast<unsigned>(problem.batch)),
        .block = dim3(kClusterThreads),
        .shared_bytes = sizeof(ClusterStorage),
        .cluster = kClusterBlocks,
        .dependent = arguments.dependent_launch};
    with_kernel_types(problem, [&]<class T, Major a, Major b>() {
      launch_kernel<cluster_kernel<T, a, b>>("gemm: wgmma_specialized", config, stream, prepared.cluster_job);
    });
    return;
  }
  with_kernel(problem, prepared.columns, [&]<class T, int n, Major a, Major b>() {
    const LaunchConfig config{.grid = prepared.job.order.grid(problem.batch),
                              .block = dim3(kSpecializedThreads),
                              .shared_bytes = sizeof(Storage<n>),
                              .dependent = arguments.dependent_launch};
    launch_kernel<kernel<T, n, a, b>>("gemm: wgmma_specialized", config, stream, prepared.job);
  });
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
