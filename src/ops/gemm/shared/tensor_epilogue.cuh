// The epilogue of a plain product with a 16-bit D: each warp rounds 64 columns of its accumulators, lays them into
// shared memory by stmatrix and hands them to the copy engine, which writes whole lines and clips at the edges of D, at
// the right edge in steps of 16 bytes (seen on an H200: rows of 10 bytes got 16). No barrier but the warp's, and the
// warp goes on while the engine reads.
#pragma once

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/matrix.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/tensor_maps.cuh"

namespace tmaops::ops::gemm {

/// How a warp's 16 x n accumulators leave: in pieces of 64 or 32 columns, swizzled, or, where 32 does not divide n,
/// whole or in halves of an odd number of 16-byte chunks a row, whose rows then meet in no bank. Of a D^T in pieces as
/// large, whose rows are columns of the tile and have 16 elements.
template <int n>
struct StorePieces {
  static constexpr tma::Swizzle swizzle = n % 64 == 0   ? tma::Swizzle::b128
                                          : n % 32 == 0 ? tma::Swizzle::b64
                                                        : tma::Swizzle::none;
  static constexpr bool swizzled = swizzle != tma::Swizzle::none;
  static constexpr int columns = n % 64 == 0 ? 64 : n % 32 == 0 ? 32 : n / 8 % 2 == 1 ? n : n / 2;
  static constexpr int pieces = n / columns;
  static constexpr int row_bytes = 2 * columns;
  static constexpr int bytes = kStagedRows * row_bytes;
  static constexpr int chunks = row_bytes / 16;  // of 8 columns
  static_assert(n % columns == 0 && (swizzled || chunks % 2 == 1));

  /// Where a row's chunk lies in a piece.
  static __device__ __forceinline__ int at(int row, int chunk) {
    const int moved = n % 64 == 0 ? chunk ^ (row & 7) : n % 32 == 0 ? chunk ^ (row / 2 & 3) : chunk;
    return row * row_bytes + (moved << 4);
  }
  /// Where the chunk of a column's rows 8 half to 8 half + 7 lies in a piece of D^T, swizzled in 32 bytes.
  static __device__ __forceinline__ int transposed_at(int column, int half) {
    return column * 2 * kStagedRows + ((half ^ (column / 4 & 1)) << 4);
  }
};

/// The map of D for the pieces of a tile of n columns. D's rows, or the columns of a column-major D, are contiguous and
/// start at multiples of 16 bytes.
template <int n>
tma::TensorMapSpec map_d(const RowMajorCall& call) {
  const MatrixLayout& d = call.problem.d;
  const bool columns = d.order == Order::column;
  const std::int64_t inner = columns ? d.rows : d.columns;
  const std::int64_t outer = columns ? d.columns : d.rows;
  const std::int64_t stride = columns ? d.column_stride : d.row_stride;
  tma::TensorMapSpec spec;
  spec.dtype = tma::element_type(d.dtype);
  spec.address = reinterpret_cast<std::uintptr_t>(call.arguments.d);
  spec.dims = {inner, outer, d.batch_stride != 0 ? call.problem.batch : 1};
  spec.strides = {outer > 1 ? 2 * stride : (2 * inner + 15) / 16 * 16, d.batch_stride != 0 ? 2 * d.batch_stride : 16};
  spec.box = {columns ? kStagedRows : StorePieces<n>::columns, columns ? StorePieces<n>::columns : kStagedRows, 1};
  spec.swizzle = columns ? tma::Swizzle::b32 : StorePieces<n>::swizzle;
  return spec;
}

/// In which order a tensor store writes D: row by row, or a column-major D column by column.
enum class StoreOrder : std::uint8_t { rows, columns };

/// A warp's 16 x n accumulators, which begin at (row, column), to D. `buffer(i)`: where piece i is laid, at a multiple
/// of what its swizzle repeats after; the last `buffers` of them are different. Before the block ends, and before the
/// buffers serve something else, wait_stores_read().
template <int n, int buffers, StoreOrder order = StoreOrder::rows, class Buffer>
__device__ __forceinline__ void store_tile(const tma::TensorMap& map, const Epilogue& epilogue,
                                           const float (&accumulators)[n / 2], const Buffer& buffer, int row,
                                           int column, int batch) {
  using Pieces = StorePieces<n>;
  if (row >= epilogue.rows) return;
  const int lane = device::lane_index();
  const int matrix_row = lane % 16;  // matrices 0 and 1: rows 0-7 and 8-15 of one chunk; 2 and 3: of the next
#pragma unroll
  for (int piece = 0; piece < Pieces::pieces; ++piece) {
    const int at = column + piece * Pieces::columns;
    unsigned char* const to = buffer(piece);
    if (lane == 0) device::wait_stores_read<buffers - 1>();
    __syncwarp();
    if (at < epilogue.columns) {
#pragma unroll
      for (int first = 0; first < Pieces::chunks; first += 2) {
        const int second = first + 1 < Pieces::chunks ? first + 1 : first;  // an odd last one is written twice alike
        const float* low = accumulators + 4 * (piece * Pieces::chunks + first);
        const float* high = accumulators + 4 * (piece * Pieces::chunks + second);
        const std::uint32_t words[4] = {pack(low[0], low[1], epilogue.d_dtype), pack(low[2], low[3], epilogue.d_dtype),
                                        pack(high[0], high[1], epilogue.d_dtype),
                                        pack(high[2], high[3], epilogue.d_dtype)};
        if constexpr (order == StoreOrder::rows)
          device::store_matrices(to + Pieces::at(matrix_row, lane < 16 ? first : second), words);
        else
          device::store_matrices_transposed(
              to + Pieces::transposed_at(8 * (lane < 16 ? first : second) + lane % 8, lane / 8 % 2), words);
      }
      device::fence_async_shared();
      __syncwarp();
      if (lane == 0 && order == StoreOrder::rows) device::tensor_store<3>(&map, {at, row, batch}, to);
      if (lane == 0 && order == StoreOrder::columns) device::tensor_store<3>(&map, {row, at, batch}, to);
    }
    if (lane == 0) device::commit_stores();  // also of nothing: waiting counts groups
  }
#pragma unroll
  for (int rest = Pieces::pieces; rest % buffers != 0; ++rest)  // the next call begins with the first buffer
    if (lane == 0) device::commit_stores();
}

}  // namespace tmaops::ops::gemm
