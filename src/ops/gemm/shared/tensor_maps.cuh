// Tensor maps of A, B and D, and the loads of one stage through them.
//
// An operand's map is {width, outer, inner / width, batch} where that describes it, so that one instruction fetches
// panels of `width` elements side by side (panel_width); otherwise {inner, outer, 1, batch} and one load per panel.
// `inner` is the index along which memory is contiguous. Elements outside are zero.
#pragma once

#include "device/pipeline.cuh"
#include "device/tensor_copy.cuh"
#include "ops/gemm/shared/multiply.cuh"
#include "tma/driver.hpp"

namespace tmaops::ops::gemm {

/// How a kernel loads an operand. The map is kept beside it, since a map has to be a kernel parameter of its own type.
struct TensorOperand {
  int batch_step = 0;   // 0: one matrix serves every batch
  bool folded = false;  // the map has panels as its third dimension
};

/// Loads `panels` panels of `width` along `inner`, at (inner, outer), by one thread. `blocks`: 0 for this block alone,
/// else the blocks of the cluster that all get them. `hint`: nothing, or a device::CacheHint.
template <int panels, int panel_bytes, int width = 64, class... Hint>
__device__ __forceinline__ void load_panels(unsigned char* to, const tma::TensorMap& map, const TensorOperand& operand,
                                            int inner, int outer, int batch, device::Barrier& full,
                                            std::uint16_t blocks, Hint... hint) {
  const auto load = [&](unsigned char* place, int first, int panel) {
    const std::int32_t at[4] = {first, outer, panel, batch * operand.batch_step};
    if (blocks == 0)
      device::tensor_load<4>(place, &map, at, full, hint...);
    else
      device::tensor_load_multicast<4>(place, &map, at, full, blocks, hint...);
  };
  if (panels > 1 && operand.folded) {
    load(to, 0, inner / width);
  } else {
#pragma unroll 2  // four at once spill where both operands come in panels
    for (int panel = 0; panel < panels; ++panel) load(to + panel * panel_bytes, inner + width * panel, 0);
  }
}

/// Loads the tile of `extent` rows of A or columns of B that begins at (mn, k) by one thread. `depth`: of k, less than
/// kDepth only where the operand is contiguous along the other index.
template <Major major, int extent, int depth = kDepth, class... Hint>
__device__ __forceinline__ void load_tile(unsigned char* to, const tma::TensorMap& map, const TensorOperand& operand,
                                          int mn, int k, int batch, device::Barrier& full, std::uint16_t blocks = 0,
                                          Hint... hint) {
  constexpr int kLine = kTileRowBytes<major, extent>;
  if constexpr (major == Major::k)
    load_panels<1, 0>(to, map, operand, k, mn, batch, full, blocks, hint...);
  else
    load_panels<2 * extent / kLine, depth * kLine, kLine / 2>(to, map, operand, mn, k, batch, full, blocks, hint...);
}

/// An operand and its map on the host.
struct MappedOperand {
  tma::TensorMapSpec spec;
  TensorOperand operand;

  /// One load brings `panels` panels of `width` along the contiguous index, `outer_box` long along the other.
  MappedOperand(const MatrixLayout& layout, const void* data, std::int64_t batch, bool inner_is_column, int panels,
                int outer_box, int width = 64) {
    const std::int64_t inner = inner_is_column ? layout.columns : layout.rows;
    const std::int64_t outer = inner_is_column ? layout.rows : layout.columns;
    const std::int64_t stride = inner_is_column ? layout.row_stride : layout.column_stride;
    const std::int64_t outer_bytes = outer > 1 ? 2 * stride : (2 * inner + 15) / 16 * 16;
    operand.batch_step = layout.batch_stride != 0 ? 1 : 0;
    operand.folded = panels > 1 && inner % width == 0;
    const std::int64_t batches = operand.batch_step != 0 ? batch : 1;
    const std::int64_t batch_bytes = operand.batch_step != 0 ? 2 * layout.batch_stride : 16;
    spec.dtype = tma::element_type(layout.dtype);
    spec.address = reinterpret_cast<std::uintptr_t>(data);
    spec.dims = {operand.folded ? width : inner, outer, operand.folded ? inner / width : 1, batches};
    spec.strides = {outer_bytes, 2 * width, batch_bytes};
    spec.box = {width, outer_box, operand.folded ? panels : 1, 1};
    spec.swizzle = width == 64 ? tma::Swizzle::b128 : tma::Swizzle::b64;
    spec.l2_promotion = tma::L2Promotion::b256;
  }

  /// For tiles of `extent` rows or columns of a K-major operand that has fewer: shortens the box, since one that
  /// reaches behind the matrix loads slowly (docs/findings/gemm_models.md, L9). Returns how many bytes of a tile,
  /// kDepth deep, no load brings then.
  int leave_out_behind(int extent) {
    const std::int64_t has = spec.dims[1];
    if (has >= extent) return 0;
    if (operand.folded) {
      spec.dims[0] *= spec.dims[2];
      spec.dims[2] = spec.box[2] = 1;
      operand.folded = false;
    }
    spec.box[1] = has;
    return static_cast<int>(extent - has) * kRowBytes;
  }
};

/// Maps for load_tile with the same extent and depth.
inline MappedOperand map_a(const RowMajorCall& call, int extent, int depth = kDepth) {
  const bool k_major = major_of_a(call.problem) == Major::k;
  return {call.problem.a, call.arguments.a,          call.problem.batch,
          k_major,        k_major ? 1 : extent / 64, k_major ? extent : depth};
}
inline MappedOperand map_b(const RowMajorCall& call, int extent, int depth = kDepth) {
  const bool k_major = major_of_b(call.problem) == Major::k;
  const int width = panel_width(major_of_b(call.problem), extent);
  const int panels = k_major ? 1 : extent / width;
  return {call.problem.b, call.arguments.b, call.problem.batch, !k_major, panels, k_major ? extent : depth, width};
}

}  // namespace tmaops::ops::gemm
