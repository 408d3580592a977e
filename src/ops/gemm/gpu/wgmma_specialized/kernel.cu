// Version 3: roles. New against version 2: a producer warp that does nothing but fetch, so that fetching never waits
// for a product; two consumer warpgroups, which get its registers (setmaxnreg) for 128 x 256 of D; a ring of 192 KiB.
// TMA writes D from the stages that the last products have left, half of it while the other half is still multiplied.
// One block per multiprocessor and tile, and plain products only.
#include <algorithm>

#include "ops/gemm/shared/warp_roles.cuh"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_specialized {
namespace {

/// Named barriers.
inline constexpr int kGroups = 1;  // and 2: of one consumer warpgroup
inline constexpr int kLastStages = 3;

/// How the first stage comes in two halves, so that the products can begin with one of them: of the depth, where no
/// line of memory runs along k; else of A's rows, the first with all of B, so that warpgroup 0 can begin. Splitting in
/// four gains nothing over two.
enum class Halves : std::uint8_t { of_depth, of_rows };
template <Major a_major, Major b_major>
inline constexpr Halves kHalvesOf = a_major == Major::mn && b_major == Major::mn ? Halves::of_depth : Halves::of_rows;
inline constexpr int kHalfDepth = kDepth / 2;
inline constexpr int kHalfPanelBytes = kPanelBytes / 2;

/// 192 KiB of stages.
template <int n>
struct Storage {
  struct Stage {
    unsigned char a[kSpecializedRows * kRowBytes];
    unsigned char b[n * kRowBytes];
  };
  static constexpr int stages = std::min(6, (192 << 10) / static_cast<int>(sizeof(Stage)));
  alignas(1024) Stage stage[stages];
  device::Ring<stages> ring;
  device::Barrier first_half;  // of stage 0, the first time; the ring's has the second one

  /// Byte `at`, below 8 KiB, of warpgroup `group`'s rows of A in a stage. When its last product is done they are its
  /// own, those of both halves of k in pieces of 4 KiB.
  template <Halves halves>
  __device__ __forceinline__ unsigned char* own(int stage_index, int group, int at) {
    if (halves == Halves::of_depth) at += at / kHalfPanelBytes * kHalfPanelBytes;
    return stage[stage_index].a + group * (halves == Halves::of_depth ? kHalfPanelBytes : kPanelBytes) + at;
  }
};

struct Job {
  SpecializedJob parts;
  TileOrder order;
};

/// A warpgroup's 64 x n product over all k. A stage is given back one product late, so that the tensor cores always
/// have the next one. LastStages shortens the time from the last product to the end of the block.
template <class T, int n, Major a_major, Major b_major>
__device__ __forceinline__ void multiply_tile(float (&accumulators)[n / 2], Storage<n>& shared,
                                              const SpecializedJob& job, int group) {
  const int k_tiles = job.k_tiles;
  constexpr int kStages = Storage<n>::stages;
  constexpr Halves kHalves = kHalvesOf<a_major, b_major>;
  constexpr bool kOfDepth = kHalves == Halves::of_depth;
  constexpr int kSteps = kDepth / 16;
  using Left = TileOperand<a_major, kOfDepth ? kSpecializedRows : 64, kOfDepth ? kHalfDepth : kDepth>;
  using Right = TileOperand<b_major, n, kOfDepth ? kHalfDepth : kDepth>;
  device::Consumer<kStages> consumer(shared.ring);
  const auto multiply = [&](int stage, int from, int to, bool accumulate) {
    const Left left(shared.template own<kHalves>(stage, group, 0));
    const Right right(shared.stage[stage].b);
    const device::UnwrittenReads behind(job.left_out > 0);  // B's last column
    __syncwarp();
    device::wgmma_fence();
#pragma unroll
    for (int i = from; i < to; ++i)
      device::Wgmma<T, n>::template multiply<a_major, b_major>(accumulators, left.at(i), right.at(i),
                                                               accumulate || i > 0);
    device::wgmma_commit();
  };
  device::wait(shared.first_half, 0, {"the first half of a stage", 0});
  if (kOfDepth) multiply(0, 0, kSteps / 2, false);
  if (kOfDepth || group == 1) (void)consumer.acquire();
  multiply(0, kOfDepth ? kSteps / 2 : 0, kSteps, kOfDepth);
  if (!kOfDepth && group == 0) (void)consumer.acquire();

  const LastStages<kLastStages> last{group == 1 ? max(1, k_tiles - kStages) : 0, group == 0 && k_tiles > 1};
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 1; k_tile < k_tiles; ++k_tile) {
    last.wait(k_tile, [&] {
      if (device::lane_index() == 0) consumer.release(previous);
    });
    const int current = consumer.acquire();
    multiply(current, 0, kSteps, true);
    device::wgmma_wait<1>();
    if (k_tile != last.begin && device::lane_index() == 0) consumer.release(previous);
    previous = current;
  }
  last.pass_on();
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
}

/// All threads of one of the two consumer warpgroups.
__device__ __forceinline__ void sync_group(int group) {
  if (group == 0)
    device::sync_threads<kGroups>(device::kWarpgroupThreads);
  else
    device::sync_threads<kGroups + 1>(device::kWarpgroupThreads);
}

/// A consumer warp's part of the tile at (row, column), to D, by way of the stages.
template <int n, Halves halves>
__device__ __forceinline__ void finish_tile(const SpecializedJob& job, const float (&accumulators)[n / 2],
                                            Storage<n>& shared, int row, int column, int batch) {
  const int group = device::warp_index() / 4 - 1;
  const int warp = device::warp_index() % 4;
  sync_group(group);  // no warp's products read these stages any more
  constexpr int bytes = StorePieces<n>::bytes;
  constexpr int pieces = StorePieces<n>::pieces;
  constexpr int in_stage = kPanelBytes / bytes;
  static_assert(4 * pieces <= in_stage * Storage<n>::stages);
  static_assert(halves != Halves::of_depth || kHalfPanelBytes % bytes == 0);
  const auto piece_in_stage = [&](int piece) {
    const int number = 4 * piece + warp;
    return shared.template own<halves>(number / in_stage, group, number % in_stage * bytes);
  };
  store_tile<n, pieces>(job.map_d, job.epilogue, accumulators, piece_in_stage, row, column, batch);
  if (device::lane_index() == 0) device::wait_stores_read();
}

template <class T, int n, Major a_major, Major b_major>
__global__ void __launch_bounds__(kSpecializedThreads, 1) kernel(const __grid_constant__ Job job) {
  using Shared = Storage<n>;
  constexpr Halves kHalves = kHalvesOf<a_major, b_major>;
  constexpr bool kOfDepth = kHalves == Halves::of_depth;
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int row = min(tile.row * kSpecializedRows, parts.last_row);
  const int column = min(tile.column * n, parts.last_column);
  const int batch = static_cast<int>(blockIdx.z);
  const int warp = device::warp_index();
  const bool fetches = warp == 0 && device::elect_one();
  const auto load_half = [&](int half, int stage, int k, device::Barrier& full) {
    unsigned char* const a = shared.stage[stage].a + half * kPanelBytes;
    unsigned char* const b = shared.stage[stage].b;
    if constexpr (kOfDepth) {
      k += half * kHalfDepth;
      load_tile<a_major, kSpecializedRows, kHalfDepth>(a, parts.map_a, parts.a, row, k, batch, full);
      load_tile<b_major, n, kHalfDepth>(b + half * (n * 2 * kHalfDepth), parts.map_b, parts.b, column, k, batch, full);
    } else {
      load_tile<a_major, kSpecializedRows / 2>(a, parts.map_a, parts.a, row + half * (kSpecializedRows / 2), k, batch,
                                               full);
      if (half == 0) load_tile<b_major, n>(b, parts.map_b, parts.b, column, k, batch, full);
    }
  };
  if (fetches) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    device::init_barrier(shared.first_half, 1);
    shared.ring.init(1, kConsumerWarps);
  }
  device::wait_for_previous_kernel();
  if (fetches) {  // on its way while the block gathers
    constexpr int kStageBytes = sizeof(typename Shared::Stage);
    constexpr int kSecondBytes = kOfDepth ? kStageBytes / 2 : kPanelBytes;
    device::arrive_expect_bytes(shared.first_half, kStageBytes - kSecondBytes - parts.left_out);
    load_half(0, 0, 0, shared.first_half);
    device::arrive_expect_bytes(shared.ring.full[0], kSecondBytes);
    load_half(1, 0, 0, shared.ring.full[0]);
  }
  __syncthreads();

  if (warp < 4) {
    device::decrease_registers<kProducerRegisters>();
    if (fetches) {
      device::Producer<Shared::stages> producer(shared.ring);
      (void)producer.acquire();
#pragma unroll 1
      for (int k_tile = 1; k_tile < parts.k_tiles; ++k_tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(typename Shared::Stage) - parts.left_out);
#pragma unroll
        for (int half = 0; half < 2; ++half) load_half(half, stage, k_tile * kDepth, producer.full(stage));
      }
    }
  } else {
    device::increase_registers<kConsumerRegisters>();
    const int consumer_warp = warp - 4;
    float accumulators[n / 2];
    const int own_row = row + consumer_warp * kStagedRows;
    multiply_tile<T, n, a_major, b_major>(accumulators, shared, parts, consumer_warp / 4);
    finish_tile<n, kHalves>(parts, accumulators, shared, own_row, column, batch);
  }
}

/// Calls fn.template operator()<T, n, major of A, major of B>().
template <class Fn>
void with_kernel(const RowMajorCall& call, int columns, const Fn& fn) {
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    if (columns == 256) return fn.template operator()<T, 256, a, b>();
    fn.template operator()<T, 128, a, b>();
  });
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall call(given, arguments);
  Work work(kSite, given.device);
  with_kernel(call, config.columns, [&]<class T, int n, Major a, Major b>() {
    constexpr bool kOfDepth = kHalvesOf<a, b> == Halves::of_depth;
    constexpr int kBoxDepth = kOfDepth ? kHalfDepth : kDepth;
    const LoadBoxes boxes{.a_extent = kOfDepth ? kSpecializedRows : kSpecializedRows / 2,
                          .a_depth = kBoxDepth,
                          .b_extent = n,
                          .b_depth = kBoxDepth,
                          .l2_promotion = tma::L2Promotion::b128};  // with b256 the next stage comes too
    const Job job{.parts = make_specialized_job<kSpecializedRows, n>(call, boxes),
                  .order = order_of_tiles(call.problem, config)};
    const LaunchShape shape{.grid = job.order.grid(call.problem.batch),
                            .block = kSpecializedThreads,
                            .shared_bytes = sizeof(Storage<n>),
                            .dependent = arguments.dependent_launch};
    work.add(kernel<T, n, a, b>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
