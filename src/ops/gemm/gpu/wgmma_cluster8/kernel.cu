// Version 9: clusters of eight, for rows that do not start at multiples of 128 bytes. Each 128 bytes of such a row come
// as 160 to 192 from two lines of the L2, and what limits a product of one wave is what enters a multiprocessor and how
// many lines the L2 is asked for. Eight blocks that lie one below the other form a cluster; each fetches its own A, and
// a part of B for all of them. Tiles of 64 x 144 (docs/findings/gemm.md, G12 and G15).
#include "device/cluster.cuh"
#include "ops/gemm/shared/warp_roles.cuh"

namespace tmaops::ops::gemm::wgmma_cluster8 {
namespace {

constexpr int kBlocks = 8;
constexpr int kRows = 64;  // of a block
constexpr int kColumns = 144;
constexpr int kThreads = 2 * device::kWarpgroupThreads;  // one warpgroup multiplies, a warp fetches
/// K-major: B's columns come in pieces of 24, each by one block. Otherwise a block fetches 8 of the stage's 64 k, of
/// two panels of 64 columns and one of 16.
constexpr int kPieceColumns = 24;
constexpr int kPieceDepth = kDepth / kBlocks;
constexpr int kWideColumns = 128;
constexpr int kNarrowColumns = kColumns - kWideColumns;

struct Job {
  SpecializedJob parts;
  tma::TensorMap map_narrow;  // B's last 16 columns where they are contiguous
  int row_clusters = 0;
};

struct Storage {
  static constexpr int stages = 8;
  struct Stage {
    unsigned char a[kRows * kRowBytes];
    unsigned char b[kColumns * kRowBytes];
  };
  alignas(1024) Stage stage[stages];
  device::Ring<stages> ring;
};

/// This block's part of B's k-tile, to all blocks of the cluster.
template <Major b_major>
__device__ __forceinline__ void load_shared_columns(unsigned char* to, const Job& job, int column, int k, int batch,
                                                    int rank, device::Barrier& full) {
  constexpr std::uint16_t kAll = (1 << kBlocks) - 1;
  const SpecializedJob& parts = job.parts;
  if constexpr (b_major == Major::k) {
    const int first = rank * kPieceColumns;
    if (first < kColumns)
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
__device__ __forceinline__ void multiply_wide_and_narrow(float (&wide)[kWideColumns / 2],
                                                         float (&narrow)[kNarrowColumns / 2],
                                                         const Storage::Stage& stage, bool accumulate) {
  const TileOperand<a_major, kRows> left(stage.a);
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
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Job job) {
  constexpr int kStages = Storage::stages;
  auto& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const int warp = device::warp_index();
  const int lane = device::lane_index();
  const int rank = static_cast<int>(device::cluster_rank());
  const int cluster = static_cast<int>(blockIdx.x) / kBlocks;
  const int row = (cluster % job.row_clusters * kBlocks + rank) * kRows;
  const int column = cluster / job.row_clusters * kColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const bool fetches = warp == 4 && device::elect_one();
  const auto load_a = [&](int stage, int k_tile) {
    device::Barrier& full = shared.ring.full[stage];
    device::arrive_expect_bytes(full, sizeof(Storage::Stage));
    load_tile<a_major, kRows>(shared.stage[stage].a, parts.map_a, parts.a, row, k_tile * kDepth, batch, full);
  };
  if (fetches) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    shared.ring.init(1, kBlocks * 4);
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
  float accumulators[kColumns / 2];
  float(&wide)[kWideColumns / 2] = reinterpret_cast<float(&)[kWideColumns / 2]>(accumulators);
  float(&narrow)[kNarrowColumns / 2] = reinterpret_cast<float(&)[kNarrowColumns / 2]>(accumulators[kWideColumns / 2]);
  device::Consumer<kStages> consumer(shared.ring);
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
    const int current = consumer.acquire();
    __syncwarp();
    if constexpr (b_major == Major::k)
      multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[current].a, shared.stage[current].b,
                                                    k_tile > 0);
    else
      multiply_wide_and_narrow<T, a_major, b_major>(wide, narrow, shared.stage[current], k_tile > 0);
    device::wgmma_wait<1>();
    // Only to blocks that fill the stage again: those wait for it, so none has ended when it is told.
    if (k_tile > 0 && k_tile - 1 + kStages < parts.k_tiles && lane < kBlocks)
      consumer.release_to(previous, static_cast<std::uint32_t>(lane));
    previous = current;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
  device::sync_threads<1>(device::kWarpgroupThreads);  // no warp's products read stage 0 any more
  using Pieces = StorePieces<kColumns>;
  constexpr int kBytes = (Pieces::bytes + 1023) / 1024 * 1024;
  static_assert(4 * Pieces::pieces * kBytes <= static_cast<int>(sizeof(Storage::Stage)));
  const auto piece_in_stage = [&](int piece) { return shared.stage[0].a + (warp * Pieces::pieces + piece) * kBytes; };
  store_tile<kColumns, Pieces::pieces>(parts.map_d, parts.epilogue, accumulators, piece_in_stage,
                                       row + warp * kStagedRows, column, batch);
  if (lane == 0) device::wait_stores_read();
}

}  // namespace

/// D leaves through a tensor map.
Work plan(const Problem& given, const Arguments& arguments, const Config&) {
  const RowMajorCall call(given, arguments);
  const Problem& problem = call.problem;
  const int device = problem.device.index;
  const bool k_major = major_of_b(problem) == Major::k;
  MappedOperand a = map_a(call, kRows);
  MappedOperand b(problem.b, call.arguments.b, problem.batch, !k_major, 1, k_major ? kPieceColumns : kPieceDepth);
  // Where both are contiguous along K, promotion to 256 bytes is better for cold operands and no worse for hot ones.
  if (major_of_a(problem) == Major::mn && !k_major) a.spec.l2_promotion = b.spec.l2_promotion = tma::L2Promotion::b128;
  Job job;
  job.parts = {.map_a = tma::encode_valid(a.spec, device),
               .map_b = tma::encode_valid(b.spec, device),
               .map_d = tma::encode_valid(map_d<kColumns>(call), device),
               .a = a.operand,
               .b = b.operand,
               .epilogue = call.epilogue(),
               .k_tiles = call.k_tiles(),
               .tensor_store = true};
  if (!k_major) {
    tma::TensorMapSpec narrow = b.spec;
    narrow.box[0] = kNarrowColumns;
    narrow.swizzle = tma::Swizzle::b32;
    job.map_narrow = tma::encode_valid(narrow, device);
  }
  constexpr int kClusterRows = kBlocks * kRows;
  job.row_clusters = static_cast<int>((problem.m + kClusterRows - 1) / kClusterRows);
  const auto column_tiles = static_cast<int>((problem.n + kColumns - 1) / kColumns);
  const LaunchShape shape{.grid = {static_cast<unsigned>(kBlocks * job.row_clusters * column_tiles), 1,
                                   static_cast<unsigned>(problem.batch)},
                          .block = kThreads,
                          .shared_bytes = sizeof(Storage),
                          .cluster = kBlocks,
                          .dependent = arguments.dependent_launch};
  Work work(kSite, problem.device);
  with_kernel_types(
      call, [&]<class T, Major a_major, Major b_major>() { work.add(kernel<T, a_major, b_major>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_cluster8
