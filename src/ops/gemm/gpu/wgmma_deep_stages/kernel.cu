// Version 8: deep stages, for one wave of whole tiles with a long K. What is new against version 2: a warp that
// fetches, stages of 128 of k, and a first stage that comes by cp.async from the consumers while the fetching warp
// still sets up barriers and descriptors. Two blocks of a cluster take half of K of a tile of 64 x 64 each. At the end
// each sends the other half of its accumulators through distributed shared memory and writes the half of D that it
// keeps. An accumulator is always the same two numbers added, so the bits are the same in every run.
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
constexpr int kRingReady = 1;  // named barriers
constexpr int kConsumersOnly = 2;
constexpr int kSplits = 2;                 // blocks of a cluster
constexpr int kColumns = 64;               // of a tile
constexpr int kKept = kColumns / kSplits;  // of them that a block finishes

struct Storage {
  static constexpr int stages = 5;
  struct Stage {
    unsigned char a[kHalves][kDeepRows * kRowBytes];
    unsigned char b[kHalves][kColumns * kRowBytes];
  };
  alignas(1024) Stage first;  // by cp.async; then staging
  Stage stage[stages];
  static_assert(sizeof(Stage) >= kConsumerThreads / device::kWarpThreads * sizeof(WarpStaging));
  uint4 from_other[kKept / 8][kConsumerThreads];  // four accumulators each
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
  bool direct = false;
  Epilogue epilogue;
};

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Job job) {
  constexpr int kStages = Storage::stages;
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order, blockIdx.x / kSplits);
  if (!tile.inside(job.order)) return;  // all blocks of the cluster
  const int rank = static_cast<int>(blockIdx.x % kSplits);
  const int row = tile.row * kDeepRows;
  const int column = tile.column * kColumns;
  const int batch = static_cast<int>(blockIdx.z);
  const int first = job.k_tiles * rank / kSplits;
  const int last = job.k_tiles * (rank + 1) / kSplits;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();

  if (thread >= kConsumerThreads) {
    if (device::elect_one()) {
      device::init_barrier(shared.received, 1);
      device::arrive_expect_bytes(shared.received, sizeof(shared.from_other));
      shared.ring.init(1, kConsumerThreads / device::kWarpThreads);
    }
    __syncwarp();
    device::cluster_arrive_relaxed();  // `received` is ready
    device::arrive_threads<kRingReady>(kThreads);
    const device::CacheHint hint_a = hint_of(job.a_evict_first);
    const device::CacheHint hint_b = hint_of(job.b_evict_first);
    device::wait_for_previous_kernel();
    if (device::elect_one()) {
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int k_tile = first + 1; k_tile < last; ++k_tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(Storage::Stage));
        load_deep<b_major, kColumns>(shared.stage[stage].b, job.map_b, job.b, column, k_tile * kDeepDepth, batch,
                                     producer.full(stage), hint_b);
        load_deep<a_major, kDeepRows>(shared.stage[stage].a, job.map_a, job.a, row, k_tile * kDeepDepth, batch,
                                      producer.full(stage), hint_a);
      }
    }
    __syncwarp();
    device::cluster_wait();
    return;
  }

  device::cluster_arrive_relaxed();
  device::wait_for_previous_kernel();
  ChunkTile<a_major, kDeepRows, kConsumerThreads> a(job.thread_a, job.thread_a.data + batch * job.thread_a.batch_stride,
                                                    row, first * kDeepDepth, (first + 1) * kDeepDepth, thread);
  ChunkTile<b_major, kColumns, kConsumerThreads> b(job.thread_b, job.thread_b.data + batch * job.thread_b.batch_stride,
                                                   column, first * kDeepDepth, (first + 1) * kDeepDepth, thread);
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    a.fetch_whole(shared.first.a[half]);
    b.fetch_whole(shared.first.b[half]);
    device::commit_copies();
  }
  device::sync_threads<kRingReady>(kThreads);

  float accumulators[kColumns / 2];
  const auto multiply_first = [&](int half) {
    device::fence_async_shared();
    device::sync_threads<kConsumersOnly>(kConsumerThreads);
    multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.first.a[half], shared.first.b[half], half > 0);
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
      multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[stage].a[half],
                                                    shared.stage[stage].b[half], true);
    device::wgmma_wait<kHalves>();
    if (previous >= 0 && device::lane_index() == 0) consumer.release(previous);
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  float kept[kKept / 2];
  device::cluster_wait();
  // Barriers that count bytes, not those of the cluster: ordering by these flushes and empties the L1.
#pragma unroll
  for (int i = 0; i < kKept / 8; ++i) {
    std::uint32_t word[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      word[j] = __float_as_uint(rank == 0 ? accumulators[kKept / 2 + 4 * i + j] : accumulators[4 * i + j]);
    device::store_async(&shared.from_other[i][thread], make_uint4(word[0], word[1], word[2], word[3]), shared.received,
                        static_cast<std::uint32_t>(rank ^ 1));
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

Work plan(const Problem& given, const Arguments& arguments, const Config&) {
  const RowMajorCall call(given, arguments);
  const Problem& problem = call.problem;
  const MappedOperand a = map_deep_a(call);
  const MappedOperand b = map_deep_b(call, kColumns);
  const TileOrder order(problem, kDeepRows, kColumns);
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
                .direct = has_plain_rows(problem),
                .epilogue = call.epilogue()};
  LaunchShape shape{.grid = order.grid(problem.batch),
                    .block = kThreads,
                    .shared_bytes = sizeof(Storage),
                    .cluster = kSplits,
                    .dependent = arguments.dependent_launch};
  shape.grid.x *= kSplits;
  Work work(kSite, problem.device);
  with_kernel_types(
      call, [&]<class T, Major a_major, Major b_major>() { work.add(kernel<T, a_major, b_major>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_deep_stages
