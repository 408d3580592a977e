// What the kernels with roles share: a producer warp, two consumer warpgroups of 64 rows each, and the registers that
// one gives to the others.
#pragma once

#include "ops/gemm/cuda/tensor_epilogue.cuh"
#include "ops/gemm/cuda/tile_order.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kConsumers = 2;  // warpgroups
inline constexpr int kConsumerWarps = 4 * kConsumers;
inline constexpr int kSpecializedThreads = (1 + kConsumers) * device::kWarpgroupThreads;
inline constexpr int kSpecializedRows = 64 * kConsumers;
/// setmaxnreg: 128 x 40 + 256 x 232 = 64,512 of the 65,536 registers. 128 x 256 accumulators take 128 a thread.
inline constexpr int kProducerRegisters = 40;
inline constexpr int kConsumerRegisters = 232;

/// Shared memory of a tile of 128 x n: 192 KiB of stages, and staging beside them, so that an epilogue does not wait
/// for stages that the other warpgroup still reads.
template <int n>
struct SpecializedStorage {
  static constexpr int stages = n == 256 ? 4 : 6;
  struct Stage {
    unsigned char a[kSpecializedRows * kRowBytes];
    unsigned char b[n * kRowBytes];
  };
  alignas(1024) Stage stage[stages];
  WarpStaging staging[kConsumerWarps];
  device::Ring<stages> ring;
};

struct SpecializedJob {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  tma::TensorMap map_d;  // set when tensor_store
  TensorOperand a;
  TensorOperand b;
  Epilogue epilogue;
  TileOrder order;
  int k_tiles = 0;
  int batch = 0;
  bool tensor_store = false;
};

/// `a_extent`, `b_extent`: rows of A and columns of B that one load brings.
inline SpecializedJob make_specialized_job(const RowMajorCall& call, int columns, int a_extent, int b_extent) {
  const int device = call.problem.device.index;
  const MappedOperand a = map_a(call, a_extent);
  const MappedOperand b = map_b(call, b_extent);
  const bool tensor_store = stores_by_tensor(call);
  return {.map_a = tma::encode(a.spec, device),
          .map_b = tma::encode(b.spec, device),
          .map_d = tensor_store ? tma::encode(map_d(call), device) : tma::TensorMap{},
          .a = a.operand,
          .b = b.operand,
          .epilogue = call.epilogue(),
          .order = TileOrder(call.problem, kSpecializedRows, columns),
          .k_tiles = call.k_tiles(),
          .batch = static_cast<int>(call.problem.batch),
          .tensor_store = tensor_store};
}

/// A warpgroup's 64 x n product over all k. `release(stage)` gives a stage back, one product late, so that the tensor
/// cores always have the next one.
template <class T, int n, Major a_major, Major b_major, class Stage, int stages, class Release>
__device__ __forceinline__ void multiply_tile(float (&sums)[n / 2], const Stage (&stage)[stages],
                                              device::Consumer<stages>& consumer, int k_tiles, int warpgroup,
                                              const Release& release) {
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const int current = consumer.acquire();
    __syncwarp();
    multiply_stage<T, n, a_major, b_major>(sums, stage[current].a + warpgroup * kPanelBytes, stage[current].b,
                                           k_tile > 0);
    device::wgmma_wait<1>();
    if (k_tile > 0) release(previous);
    previous = current;
  }
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  release(previous);
}

/// A consumer warp's part of the tile at (row, column), to D.
template <int n>
__device__ __forceinline__ void finish_tile(const SpecializedJob& job, const float (&sums)[n / 2], WarpStaging& staging,
                                            int row, int column, int batch) {
  if (job.tensor_store) {
    store_tile<n>(job.map_d, job.epilogue, sums, staging, row, column, batch);
  } else {
    write_tile<n>(job.epilogue, sums, staging, row, column, batch);
  }
}

}  // namespace tmaops::ops::gemm::cuda
