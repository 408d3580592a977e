// Version 8: deep stages, for one wave of tiles with a long K. What is new against version 2: a warp that fetches,
// stages of 128 of k, and a first stage that comes by cp.async from the consumers while the fetching warp still sets up
// barriers and descriptors. Tiles of 64 x 128; or split-K: tiles of 64 x 64 by two blocks of a cluster that take half
// of K each. At the end each sends the other half of its accumulators through distributed shared memory and writes the
// half of D that it keeps. An accumulator is always the same two numbers added, so the bits are the same in every run.
#include "device/cluster.cuh"
#include "device/fence.cuh"
#include "ops/gemm/shared/chunk_loads.cuh"
#include "ops/gemm/shared/deep_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::wgmma_deep_stages {
namespace {

constexpr int kConsumerThreads = device::kWarpgroupThreads;
constexpr int kThreads = kConsumerThreads + device::kWarpThreads;
constexpr int kPrefetched = 2;  // stages; more would keep others waiting (docs/findings/gemm.md, G16)
constexpr int kRingReady = 1;   // named barriers
constexpr int kConsumersOnly = 2;

template <int n, int splits>
struct Storage {
  static constexpr int stages = n == 64 ? 5 : 3;
  struct Stage {
    unsigned char a[kHalves][kDeepRows * kRowBytes];
    unsigned char b[kHalves][n * kRowBytes];
  };
  alignas(1024) Stage first;  // by cp.async; then staging
  Stage stage[stages];
  static_assert(sizeof(Stage) >= kConsumerThreads / device::kWarpThreads * sizeof(WarpStaging));
  uint4 from_other[splits > 1 ? n / splits / 8 : 1][kConsumerThreads];  // four accumulators each
  device::Ring<stages> ring;
  device::Barrier received;
};

struct Job {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  TensorOperand a;
  TensorOperand b;
  ThreadOperand thread_a;
  ThreadOperand thread_b;
  TileOrder order;
  int k_tiles = 0;                             // of kDeepDepth, at least one per split
  float a_evict_first = 0, b_evict_first = 0;  // parts
  bool prefetch = false;                       // of B before the kernel in front has ended
  bool direct = false;
  Epilogue epilogue;
};

/// Starts bringing a tile of 64 into the L2. Only a hint: the kernel in front may still write there.
template <Major major>
__device__ __forceinline__ void prefetch_deep(const tma::TensorMap& map, const TensorOperand& operand, int mn, int k,
                                              int batch, device::CacheHint hint) {
  if (major == Major::k && !operand.folded) return;
  const std::int32_t at[4] = {major == Major::k ? 0 : mn, major == Major::k ? mn : k, major == Major::k ? k / 64 : 0,
                              batch * operand.batch_step};
  device::tensor_prefetch<4>(&map, at, hint);
}

template <class T, int n, int splits, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Job job) {
  using Shared = Storage<n, splits>;
  constexpr int kStages = Shared::stages;
  constexpr int kKept = n / splits;  // columns that this block finishes
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order, blockIdx.x / splits);
  if (!tile.inside(job.order)) return;  // all blocks of the cluster
  const int rank = static_cast<int>(blockIdx.x % splits);
  const int row = tile.row * kDeepRows;
  const int column = tile.column * n;
  const int batch = static_cast<int>(blockIdx.z);
  const int first = job.k_tiles * rank / splits;
  const int last = job.k_tiles * (rank + 1) / splits;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();

  if (thread >= kConsumerThreads) {
    if (device::elect_one()) {
      if (splits > 1) {
        device::init_barrier(shared.received, 1);
        device::arrive_expect_bytes(shared.received, sizeof(shared.from_other));
      }
      shared.ring.init(1, kConsumerThreads / device::kWarpThreads);
    }
    __syncwarp();
    if (splits > 1) device::cluster_arrive_relaxed();  // `received` is ready
    device::arrive_threads<kRingReady>(kThreads);
    const device::CacheHint hint_a = hint_of(job.a_evict_first);
    const device::CacheHint hint_b = hint_of(job.b_evict_first);
    if (splits > 1 && job.prefetch && device::elect_one())
      for (int k_tile = first; k_tile < min(first + kPrefetched, last); ++k_tile)
        prefetch_deep<b_major>(job.map_b, job.b, column, k_tile * kDeepDepth, batch, hint_b);
    device::wait_for_previous_kernel();
    if (device::elect_one()) {
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int k_tile = first + 1; k_tile < last; ++k_tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(typename Shared::Stage));
        load_deep<b_major, n>(shared.stage[stage].b, job.map_b, job.b, column, k_tile * kDeepDepth, batch,
                              producer.full(stage), hint_b);
        load_deep<a_major, kDeepRows>(shared.stage[stage].a, job.map_a, job.a, row, k_tile * kDeepDepth, batch,
                                      producer.full(stage), hint_a);
      }
    }
    __syncwarp();
    if (splits > 1) device::cluster_wait();
    return;
  }

  if (splits > 1) device::cluster_arrive_relaxed();
  device::wait_for_previous_kernel();
  ChunkTile<a_major, kDeepRows, kConsumerThreads> a(job.thread_a, job.thread_a.data + batch * job.thread_a.batch_stride,
                                                    row, first * kDeepDepth, (first + 1) * kDeepDepth, thread);
  ChunkTile<b_major, n, kConsumerThreads> b(job.thread_b, job.thread_b.data + batch * job.thread_b.batch_stride, column,
                                            first * kDeepDepth, (first + 1) * kDeepDepth, thread);
  if (a.whole() && b.whole()) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      a.fetch_whole(shared.first.a[half]);
      b.fetch_whole(shared.first.b[half]);
      device::commit_copies();
    }
  } else {
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      a.fetch_edge(shared.first.a[half]);
      b.fetch_edge(shared.first.b[half]);
      device::commit_copies();
    }
  }
  device::sync_threads<kRingReady>(kThreads);

  float accumulators[n / 2];
  const auto multiply_first = [&](int half) {
    device::fence_async_shared();
    device::sync_threads<kConsumersOnly>(kConsumerThreads);
    multiply_stage<T, n, a_major, b_major>(accumulators, shared.first.a[half], shared.first.b[half], half > 0);
  };
  device::wait_copies<1>();
  multiply_first(0);
  device::wait_copies<0>();
  multiply_first(1);
  device::Consumer<kStages> consumer(shared.ring);
  int previous = -1;
#pragma unroll 1
  for (int k_tile = first + 1; k_tile < last; ++k_tile) {
    const int stage = consumer.acquire();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      multiply_stage<T, n, a_major, b_major>(accumulators, shared.stage[stage].a[half], shared.stage[stage].b[half],
                                             true);
    device::wgmma_wait<kHalves>();
    if (previous >= 0 && device::lane_index() == 0) consumer.release(previous);
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  float kept[kKept / 2];
  if constexpr (splits == 1) {
#pragma unroll
    for (int i = 0; i < kKept / 2; ++i) kept[i] = accumulators[i];
  } else {
    static_assert(splits == 2);
    device::cluster_wait();
    // Barriers that count bytes, not those of the cluster: ordering by these flushes and empties the L1.
#pragma unroll
    for (int i = 0; i < kKept / 8; ++i) {
      std::uint32_t word[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        word[j] = __float_as_uint(rank == 0 ? accumulators[kKept / 2 + 4 * i + j] : accumulators[4 * i + j]);
      device::store_async(&shared.from_other[i][thread], make_uint4(word[0], word[1], word[2], word[3]),
                          shared.received, static_cast<std::uint32_t>(rank ^ 1));
    }
    device::wait(shared.received, 0, {"the other block's accumulators"});
#pragma unroll
    for (int i = 0; i < kKept / 8; ++i) {
      const uint4 sent = shared.from_other[i][thread];
      const std::uint32_t word[4] = {sent.x, sent.y, sent.z, sent.w};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        kept[4 * i + j] =
            (rank == 0 ? accumulators[4 * i + j] : accumulators[kKept / 2 + 4 * i + j]) + __uint_as_float(word[j]);
    }
  }
  const int kept_row = row + warp * kStagedRows;
  const int kept_column = column + rank * kKept;
  if (job.direct) {
    store_directly<kKept>(job.epilogue, kept, kept_row, kept_column, batch);
  } else {
    device::sync_threads<kConsumersOnly>(kConsumerThreads);  // the first stage becomes staging
    write_tile<kKept>(job.epilogue, kept, reinterpret_cast<WarpStaging*>(&shared.first)[warp], kept_row, kept_column,
                      batch);
  }
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall call(given, arguments);
  const Problem& problem = call.problem;
  const MappedOperand a = map_deep_a(call);
  const MappedOperand b = map_deep_b(call, config.columns);
  const TileOrder order(problem, kDeepRows, config.columns);
  const Job job{.map_a = tma::encode_valid(a.spec, problem.device.index),
                .map_b = tma::encode_valid(b.spec, problem.device.index),
                .a = a.operand,
                .b = b.operand,
                .thread_a = thread_a(call),
                .thread_b = thread_b(call),
                .order = order,
                .k_tiles = call.k_tiles(kDeepDepth),
                .a_evict_first = part_to_evict_first(problem, problem.a, order.tile_columns),
                .b_evict_first = part_to_evict_first(problem, problem.b, order.tile_rows),
                .prefetch = arguments.dependent_launch,
                .direct = has_plain_rows(problem),
                .epilogue = call.epilogue()};
  LaunchShape shape{.grid = order.grid(problem.batch), .block = kThreads, .dependent = arguments.dependent_launch};
  shape.cluster = static_cast<unsigned>(config.splits);
  shape.grid.x *= shape.cluster;
  Work work(kSite, problem.device);
  with_kernel_types(call, [&]<class T, Major a_major, Major b_major>() {
    if (config.splits == 1) {
      shape.shared_bytes = sizeof(Storage<128, 1>);
      work.add(kernel<T, 128, 1, a_major, b_major>, shape, job);
    } else {
      shape.shared_bytes = sizeof(Storage<64, 2>);
      work.add(kernel<T, 64, 2, a_major, b_major>, shape, job);
    }
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_deep_stages
