// Version 6: a K that the compiler knows, for products of 256 or 512 that are cut into whole tiles. What is new against
// version 5: every k-tile has its own stage and its own copy of the code, and the kernel handles nothing but the plain
// product (unrolled_tiles.cuh says why). Tiles of 64 x 16 where they are one wave: less enters a multiprocessor.
#include "ops/gemm/shared/unrolled_tiles.cuh"

namespace tmaops::ops::gemm::wgmma_unrolled_k {
namespace {

/// All k-tiles at once.
template <int columns, int k_tiles>
struct Storage {
  struct Stage {
    unsigned char a[kUnrolledRows * kRowBytes];
    unsigned char b[columns * kRowBytes];
  };
  alignas(1024) Stage stage[k_tiles];
  std::uint32_t spare[kUnrolledThreads];
  /// More than half of the multiprocessor's, so that dependent launches do not pair up.
  static constexpr int bytes = kMoreThanHalf;
  static_assert(k_tiles * sizeof(Stage) + sizeof(spare) <= bytes);
};

template <class T, int columns, int k_tiles, Major a_major, Major b_major>
__global__ void __launch_bounds__(kUnrolledThreads, 1) kernel(const __grid_constant__ UnrolledJob job) {
  using Shared = Storage<columns, k_tiles>;
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  const auto [row, column] = unrolled_position<columns, k_tiles>();
  WholeTile<a_major, kUnrolledRows, ColumnOrder::as_in_memory> a(job.a, job.a_stride, row, threadIdx.x);
  WholeTile<b_major, columns, kColumnOrder<b_major>> b(job.b, job.b_stride, column, threadIdx.x);
  a.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
#pragma unroll
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    a.fetch(shared.stage[k_tile].a, k_tile);
    b.fetch(shared.stage[k_tile].b, k_tile);
    device::commit_copies();
  }

  float accumulators[columns / 2];
  for_each_index<k_tiles>([&](auto index) {
    constexpr int k_tile = decltype(index)::value;
    device::wait_copies<k_tiles - k_tile - 1>();
    device::fence_async_shared();
    __syncthreads();
    multiply_stage<T, columns, a_major, b_major>(accumulators, shared.stage[k_tile].a, shared.stage[k_tile].b,
                                                 k_tile > 0);
  });
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
  constexpr Exchange kOtherwise = k_tiles == 4 ? Exchange::in_pairs : Exchange::in_fours;
  store_whole<T, columns, kExchange<b_major, kOtherwise>>(job.d, job.d_stride, accumulators, row, column);
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall call(given, arguments);
  const LaunchShape shape{.grid = unrolled_grid(call.problem, config.columns, static_cast<int>(given.k)),
                          .block = kUnrolledThreads,
                          .shared_bytes = kMoreThanHalf,
                          .dependent = arguments.dependent_launch};
  Work work(kSite, given.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    const UnrolledJob job(call);
    if (given.k == 8 * kDepth)
      work.add(kernel<T, 32, 8, a, b>, shape, job);
    else if (config.columns == 32)
      work.add(kernel<T, 32, 4, a, b>, shape, job);
    else
      work.add(kernel<T, 16, 4, a, b>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_unrolled_k
