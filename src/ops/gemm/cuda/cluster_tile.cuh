// A tile of 64 x 144 whose columns of B are fetched once for eight blocks: for rows that do not start at multiples of
// 128 bytes. Each 128 bytes of such a row come as 160 to 192 from two lines of the L2, and what limits a product of one
// wave is what enters a multiprocessor (70 bytes a cycle) and how many lines the L2 is asked for. Eight blocks that lie
// one below the other form a cluster; each fetches its own A, and a part of B for all of them. 1000 x 1000 are 14
// clusters, and 15 fit; the 128 tiles of 64 x 128 would be 16.
#pragma once

#include "device/cluster.cuh"
#include "ops/gemm/cuda/specialized.cuh"

namespace tmaops::ops::gemm::wgmma_specialized {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

inline constexpr int kClusterBlocks = 8;
inline constexpr int kClusterRows = 64;  // of a block
inline constexpr int kClusterColumns = 144;
inline constexpr int kClusterThreads = 2 * device::kWarpgroupThreads;  // one warpgroup multiplies, a warp fetches
/// K-major: B's columns come in pieces of 24, each by one block. Otherwise a block fetches 8 of the stage's 64 k, of
/// two panels of 64 columns and one of 16.
inline constexpr int kPieceColumns = 24;
inline constexpr int kPieceDepth = kDepth / kClusterBlocks;
inline constexpr int kWideColumns = 128;
inline constexpr int kNarrowColumns = kClusterColumns - kWideColumns;

struct ClusterJob {
  SpecializedJob parts;
  tma::TensorMap map_narrow;  // B's last 16 columns where they are contiguous
  int row_clusters = 0;
};

struct ClusterStorage {
  static constexpr int stages = 8;
  struct Stage {
    unsigned char a[kClusterRows * kRowBytes];
    unsigned char b[kClusterColumns * kRowBytes];
  };
  alignas(1024) Stage stage[stages];
  device::Ring<stages> ring;
};

/// This block's part of B's k-tile, to all blocks of the cluster.
template <Major b_major>
__device__ __forceinline__ void load_shared_columns(unsigned char* to, const ClusterJob& job, int column, int k,
                                                    int batch, int rank, device::Barrier& full) {
  constexpr std::uint16_t kAll = (1 << kClusterBlocks) - 1;
  const SpecializedJob& parts = job.parts;
  if constexpr (b_major == Major::k) {
    const int first = rank * kPieceColumns;
    if (first < kClusterColumns)
      load_panels<1, 0>(to + first * kRowBytes, parts.map_b, parts.b, k, column + first, batch, full, kAll);
  } else {
    const int first = rank * kPieceDepth;
    for (int panel = 0; panel < kWideColumns / 64; ++panel)
      load_panels<1, 0>(to + panel * kPanelBytes + first * kRowBytes, parts.map_b, parts.b, column + 64 * panel,
                        k + first, batch, full, kAll);
    load_panels<1, 0>(to + kWideColumns * kRowBytes + first * 2 * kNarrowColumns, job.map_narrow, parts.b,
                      column + kWideColumns, k + first, batch, full, kAll);
  }
}

/// One stage's 64 x 144 product, issued as one group of wgmma. Columns that are contiguous come in panels of 64 or 16,
/// which one instruction cannot mix.
template <class T, Major a_major, Major b_major>
__device__ __forceinline__ void multiply_cluster_stage(float (&wide)[kWideColumns / 2],
                                                       float (&narrow)[kNarrowColumns / 2],
                                                       const ClusterStorage::Stage& stage, bool accumulate) {
  const TileOperand<a_major, kClusterRows> left(stage.a);
  const TileOperand<b_major, kWideColumns> right(stage.b);
  const TileOperand<b_major, kNarrowColumns> rest(stage.b + kWideColumns * kRowBytes);
  device::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kDepth / 16; ++i) {
    using Wide = device::Wgmma<T, kWideColumns>;
    using Narrow = device::Wgmma<T, kNarrowColumns>;
    Wide::template multiply<a_major, b_major>(wide, left.at(i), right.at(i), accumulate || i > 0);
    Narrow::template multiply<a_major, b_major>(narrow, left.at(i), rest.at(i), accumulate || i > 0);
  }
  device::wgmma_commit();
}

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kClusterThreads, 1) cluster_kernel(const __grid_constant__ ClusterJob job) {
  constexpr int kStages = ClusterStorage::stages;
  auto& shared = device::dynamic_shared<ClusterStorage, kSite.smem>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const int warp = device::warp_index();
  const int lane = device::lane_index();
  const int rank = static_cast<int>(device::cluster_rank());
  const int cluster = static_cast<int>(blockIdx.x) / kClusterBlocks;
  const int row = (cluster % job.row_clusters * kClusterBlocks + rank) * kClusterRows;
  const int column = cluster / job.row_clusters * kClusterColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const bool fetches = warp == 4 && device::elect_one();
  const auto load_a = [&](int stage, int k_tile) {
    device::Barrier& full = shared.ring.full[stage];
    device::arrive_expect_bytes(full, sizeof(ClusterStorage::Stage));
    load_tile<a_major, kClusterRows>(shared.stage[stage].a, parts.map_a, parts.a, row, k_tile * kDepth, batch, full);
  };
  if (fetches) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    shared.ring.init(1, kClusterBlocks * 4);
  }
  device::cluster_arrive_relaxed();
  device::wait_for_previous_kernel();
  // The first A needs no other block: it is on its way while the cluster gathers. More of them would be in B's way.
  if (fetches) load_a(0, 0);
  __syncwarp();
  device::cluster_wait();

  if (warp >= 4) {
    if (!fetches) return;
    device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
    for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
      const int stage = producer.acquire();  // free in all blocks of the cluster
      if (k_tile > 0) load_a(stage, k_tile);
      load_shared_columns<b_major>(shared.stage[stage].b, job, column, k_tile * kDepth, batch, rank,
                                   producer.full(stage));
    }
    return;
  }
  float sums[kClusterColumns / 2];
  float(&wide)[kWideColumns / 2] = reinterpret_cast<float(&)[kWideColumns / 2]>(sums);
  float(&narrow)[kNarrowColumns / 2] = reinterpret_cast<float(&)[kNarrowColumns / 2]>(sums[kWideColumns / 2]);
  device::Consumer<kStages> consumer(shared.ring);
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
    const int current = consumer.acquire();
    __syncwarp();
    if constexpr (b_major == Major::k)
      multiply_stage<T, kClusterColumns, a_major, b_major>(sums, shared.stage[current].a, shared.stage[current].b,
                                                           k_tile > 0);
    else
      multiply_cluster_stage<T, a_major, b_major>(wide, narrow, shared.stage[current], k_tile > 0);
    device::wgmma_wait<1>();
    // Only to blocks that fill the stage again: those wait for it, so none has ended when it is told.
    if (k_tile > 0 && k_tile - 1 + kStages < parts.k_tiles && lane < kClusterBlocks)
      consumer.release_to(previous, static_cast<std::uint32_t>(lane));
    previous = current;
  }
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  device::sync_threads<1>(device::kWarpgroupThreads);  // no warp's products read stage 0 any more
  using Pieces = StorePieces<kClusterColumns>;
  constexpr int kBytes = (Pieces::bytes + 1023) / 1024 * 1024;
  static_assert(4 * Pieces::pieces * kBytes <= static_cast<int>(sizeof(ClusterStorage::Stage)));
  const auto piece_in_stage = [&](int piece) { return shared.stage[0].a + (warp * Pieces::pieces + piece) * kBytes; };
  store_tile<kClusterColumns, Pieces::pieces>(parts.map_d, parts.epilogue, sums, piece_in_stage,
                                              row + warp * kStagedRows, column, batch);
  if (lane == 0) device::wait_stores_read();
}

/// For a D that leaves through a tensor map.
inline ClusterJob make_cluster_job(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  const int device = problem.device.index;
  const bool k_major = major_of_b(problem) == Major::k;
  MappedOperand a = map_a(call, kClusterRows);
  MappedOperand b(problem.b, call.arguments.b, problem.batch, !k_major, 1, k_major ? kPieceColumns : kPieceDepth);
  // CR 1000 cold 7.23 us instead of 7.28, with dependent launch 6.67 instead of 6.73 (hot 6.42, 6.46); where both are
  // contiguous along K the promotion to 256 bytes is 0.6 % faster cold and makes no difference hot.
  if (major_of_a(problem) == Major::mn && !k_major) a.spec.l2_promotion = b.spec.l2_promotion = tma::L2Promotion::b128;
  ClusterJob job;
  job.parts = {.map_a = tma::encode(a.spec, device),
               .map_b = tma::encode(b.spec, device),
               .map_d = tma::encode(map_d(call, StorePieces<kClusterColumns>::columns, false), device),
               .a = a.operand,
               .b = b.operand,
               .epilogue = call.epilogue(),
               .k_tiles = call.k_tiles(),
               .tensor_store = true};
  if (!k_major) {
    tma::TensorMapSpec narrow = b.spec;
    narrow.box[0] = kNarrowColumns;
    narrow.swizzle = tma::Swizzle::b32;
    job.map_narrow = tma::encode(narrow, device);
  }
  constexpr int kRows = kClusterBlocks * kClusterRows;
  job.row_clusters = static_cast<int>((problem.m + kRows - 1) / kRows);
  return job;
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
