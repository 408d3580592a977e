// Version 7: a known K of 1024, in tiles of 64 x 128. What is new against version 6: a warp that fetches by TMA. Copies
// by cp.async hold up the warp that issues them for as long as the multiprocessor takes to ask for their lines, and a
// warpgroup that multiplies besides stands still meanwhile. But they are on their way before barriers and maps are
// ready, so the first k-tiles still come by cp.async, and the fetching warp starts behind them, so that they are served
// first (docs/findings/gemm.md, G6).
#include "device/pipeline.cuh"
#include "ops/gemm/shared/tensor_maps.cuh"
#include "ops/gemm/shared/unrolled_tiles.cuh"

namespace tmaops::ops::gemm::wgmma_unrolled_tma {
namespace {

constexpr int kColumns = 128;
constexpr int kTiles = 16;  // of k
constexpr int kStages = 6;
constexpr int kCopiedTiles = 2;  // by cp.async
constexpr int kThreads = kUnrolledThreads + device::kWarpThreads;
constexpr int kRingReady = 1;  // named barriers
constexpr int kCopiesIssued = 2;
constexpr int kMultiplyOnly = 3;

struct Storage {
  struct Stage {
    unsigned char a[kUnrolledRows * kRowBytes];
    unsigned char b[kColumns * kRowBytes];
  };
  alignas(1024) Stage stage[kStages];
  device::Ring<kStages> ring;
  std::uint32_t spare[kUnrolledThreads];
};
static_assert(sizeof(Storage) >= kMoreThanHalf);

struct Job {
  tma::TensorMap map_a, map_b;
  UnrolledJob whole;
};

/// Fetches all k-tiles from kCopiedTiles on; one thread.
template <Major a_major, Major b_major>
__device__ __forceinline__ void fetch(const Job& job, Storage& shared, std::uint32_t first_row,
                                      std::uint32_t first_column) {
  const auto row = static_cast<std::int32_t>(first_row);
  const auto column = static_cast<std::int32_t>(first_column);
  device::RingPosition<kStages> position;
  position.advance(kCopiedTiles);
#pragma unroll 1
  for (std::int32_t k_tile = kCopiedTiles; k_tile < kTiles; ++k_tile) {
    const int stage = position.stage();
    device::Barrier& full = shared.ring.full[stage];
    device::wait(shared.ring.empty[stage], position.phase() ^ 1u, {"an empty stage", stage});
    position.advance();
    device::arrive_expect_bytes(full, sizeof(Storage::Stage));
    const std::int32_t k = k_tile * kDepth;
    if constexpr (b_major == Major::mn)
      device::tensor_load<3>(shared.stage[stage].b, &job.map_b, {0, k, column / 64}, full);
    else
      device::tensor_load<5>(shared.stage[stage].b, &job.map_b, {k, 0, 0, 0, column / 32}, full);
    constexpr bool kAlongK = a_major == Major::k;
    device::tensor_load<2>(shared.stage[stage].a, &job.map_a, {kAlongK ? k : row, kAlongK ? row : k}, full);
  }
}

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const UnrolledPosition tile = unrolled_position<kColumns, kTiles>();
  if (threadIdx.x >= kUnrolledThreads) {
    const bool fetches = threadIdx.x == kUnrolledThreads;
    if (fetches) {
      device::prefetch_tensor_map(&job.map_b);
      device::prefetch_tensor_map(&job.map_a);
      shared.ring.init(1, kUnrolledThreads / device::kWarpThreads);
    }
    __syncwarp();
    device::arrive_threads<kRingReady>(kThreads);
    device::wait_for_previous_kernel();
    device::sync_threads<kCopiesIssued>(kThreads);
    if (fetches) fetch<a_major, b_major>(job, shared, tile.row, tile.column);
    return;
  }

  WholeTile<a_major, kUnrolledRows, ColumnOrder::as_in_memory> a(job.whole.a, job.whole.a_stride, tile.row,
                                                                 threadIdx.x);
  WholeTile<b_major, kColumns, kColumnOrder<b_major>> b(job.whole.b, job.whole.b_stride, tile.column, threadIdx.x);
  a.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
#pragma unroll
  for (int k_tile = 0; k_tile < kCopiedTiles; ++k_tile) {
    a.fetch(shared.stage[k_tile].a, k_tile);
    b.fetch(shared.stage[k_tile].b, k_tile);
    device::commit_copies();
  }
  device::arrive_threads<kCopiesIssued>(kThreads);

  float accumulators[kColumns / 2];
  for_each_index<kTiles>([&](auto index) {
    constexpr int k_tile = decltype(index)::value;
    constexpr int stage = k_tile % kStages;
    if constexpr (k_tile < kCopiedTiles) {
      device::wait_copies<kCopiedTiles - 1 - k_tile>();
      device::fence_async_shared();
      if constexpr (k_tile + 1 < kCopiedTiles)
        device::sync_threads<kMultiplyOnly>(kUnrolledThreads);
      else
        device::sync_threads<kRingReady>(kThreads);
    } else {
      // Of a stage that began with a tile by cp.async, TMA's first tile is the second.
      constexpr int phase = k_tile / kStages - (stage < kCopiedTiles ? 1 : 0);
      device::wait(shared.ring.full[stage], phase % 2, {"a tile by TMA", k_tile});
      __syncwarp();
    }
    multiply_stage<T, kColumns, a_major, b_major>(accumulators, shared.stage[stage].a, shared.stage[stage].b,
                                                  k_tile > 0);
    device::wgmma_wait<1>();
    constexpr int done = k_tile - 1;
    if constexpr (done >= 0 && done + kStages < kTiles)
      if (threadIdx.x % device::kWarpThreads == 0) device::arrive(shared.ring.empty[done % kStages]);
  });
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
  store_whole<T, kColumns, kExchange<b_major, Exchange::in_fours>>(job.whole.d, job.whole.d_stride, accumulators,
                                                                   tile.row, tile.column);
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config&) {
  const RowMajorCall call(given, arguments);
  const Problem& problem = call.problem;
  tma::TensorMapSpec a{.dtype = tma::element_type(problem.a.dtype)};
  a.address = reinterpret_cast<std::uintptr_t>(call.arguments.a);
  a.swizzle = tma::Swizzle::b128;
  tma::TensorMapSpec b = a;
  b.address = reinterpret_cast<std::uintptr_t>(call.arguments.b);
  const bool a_along_k = major_of_a(problem) == Major::k;
  a.dims = {a_along_k ? problem.k : problem.m, a_along_k ? problem.m : problem.k};
  a.strides = {2 * problem.a.leading_dimension()};
  a.box = {64, 64};
  static_assert(kUnrolledRows == 64 && kDepth == 64);
  const std::int64_t line = 2 * problem.b.leading_dimension();
  if (major_of_b(problem) == Major::mn) {
    b.dims = {64, problem.k, problem.n / 64};
    b.strides = {line, kRowBytes};
    b.box = {64, kDepth, kColumns / 64};
  } else {  // columns in the order of column_in_row(): e, q and j are dimensions of their own
    b.dims = {problem.k, 2, 4, 4, problem.n / 32};
    b.strides = {line, 8 * line, 2 * line, 32 * line};
    b.box = {kDepth, 2, 4, 4, kColumns / 32};
  }
  const Job job{.map_a = tma::encode_valid(a, problem.device.index),
                .map_b = tma::encode_valid(b, problem.device.index),
                .whole = UnrolledJob(call)};
  const LaunchShape shape{.grid = unrolled_grid(problem, kColumns, kTiles * kDepth),
                          .block = kThreads,
                          .shared_bytes = sizeof(Storage),
                          .dependent = arguments.dependent_launch};
  Work work(kSite, problem.device);
  with_kernel_types(
      call, [&]<class T, Major a_major, Major b_major>() { work.add(kernel<T, a_major, b_major>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_unrolled_tma
