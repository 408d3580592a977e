// What the kernels with roles share: a producer warp, two consumer warpgroups, the registers that one gives to the
// others, and what a launch is told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/gemm/shared/fragment_epilogue.cuh"
#include "ops/gemm/shared/tensor_epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kConsumers = 2;  // warpgroups
inline constexpr int kConsumerWarps = 4 * kConsumers;
inline constexpr int kSpecializedThreads = (1 + kConsumers) * device::kWarpgroupThreads;
inline constexpr int kSpecializedRows = 128;
/// setmaxnreg: 128 x 24 + 256 x 240 = 64,512 of the 65,536 registers. Accumulators take up to 192 a thread.
inline constexpr int kProducerRegisters = 24;
inline constexpr int kConsumerRegisters = 240;

/// The last stages of a tile that both warpgroups share are multiplied by one after the other: warpgroup 0 first and
/// alone, then warpgroup 1, and meanwhile half of D is written, at the 32 bytes a cycle that a multiprocessor writes.
/// `barrier`: a number of a named barrier of its own.
template <int barrier>
struct LastStages {
  int begin;    // the k-tile before which this warpgroup waits, warpgroup 1; another number otherwise
  bool passes;  // this is warpgroup 0, and the other one waits

  /// Before every k-tile. `release` gives back the stage of the k-tile before, which the wait would keep.
  template <class Release>
  __device__ __forceinline__ void wait(int k_tile, const Release& release) const {
    if (k_tile != begin) return;
    device::wgmma_wait<0>();
    release();
    device::sync_threads<barrier>(kConsumers * device::kWarpgroupThreads);
  }
  /// When the last product is in the queue of the tensor cores.
  __device__ __forceinline__ void pass_on() const {
    if (passes) device::arrive_threads<barrier>(kConsumers * device::kWarpgroupThreads);
  }
};

struct SpecializedJob {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  tma::TensorMap map_d;  // set when tensor_store
  TensorOperand a;
  TensorOperand b;
  Epilogue epilogue;
  int k_tiles = 0;
  int left_out = 0;          // bytes of a stage that no load brings
  int last_row = INT32_MAX;  // where the last tiles begin at most
  int last_column = INT32_MAX;
  bool tensor_store = false;
  StoreOrder order = StoreOrder::rows;  // of the tensor store
};

/// What one load of A and of B brings: rows or columns, and k.
struct LoadBoxes {
  int a_extent = kSpecializedRows;
  int a_depth = kDepth;
  int b_extent = 0;
  int b_depth = kDepth;
  tma::L2Promotion l2_promotion = tma::L2Promotion::b256;
};

/// Where the last tile of `extent` begins. One that would reach behind the matrix ends with it: a box of which many
/// rows lie outside loads slowly (docs/findings/gemm_models.md, L9). The sums that two tiles then make are the same
/// bits.
inline int last_tile(std::int64_t of, int extent) { return static_cast<int>(std::max<std::int64_t>(of - extent, 0)); }

/// For tiles of rows x n.
template <int rows, int n>
SpecializedJob make_specialized_job(const RowMajorCall& call, const LoadBoxes& boxes) {
  const int device = call.problem.device.index;
  MappedOperand a = map_a(call, boxes.a_extent, boxes.a_depth);
  MappedOperand b = map_b(call, boxes.b_extent, boxes.b_depth);
  a.spec.l2_promotion = b.spec.l2_promotion = boxes.l2_promotion;
  const int left_out = major_of_b(call.problem) == Major::k ? b.leave_out_behind(n) : 0;
  const bool columns = call.problem.d.order == Order::column;
  const bool tensor_store = has_fused_rows(columns ? transposed(call.problem) : call.problem);
  const bool inside = tensor_store && !call.problem.c;  // else C could be D, and be added twice
  return {.map_a = tma::encode_valid(a.spec, device),
          .map_b = tma::encode_valid(b.spec, device),
          .map_d = tensor_store ? tma::encode_valid(map_d<n>(call), device) : tma::TensorMap{},
          .a = a.operand,
          .b = b.operand,
          .epilogue = call.epilogue(),
          .k_tiles = call.k_tiles(),
          .left_out = left_out,
          .last_row = inside ? last_tile(call.problem.m, rows) : INT32_MAX,
          .last_column = inside ? last_tile(call.problem.n, n) : INT32_MAX,
          .tensor_store = tensor_store,
          .order = columns ? StoreOrder::columns : StoreOrder::rows};
}

}  // namespace tmaops::ops::gemm
