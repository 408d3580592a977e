// The epilogue of a plain product with a 16-bit D: each warp rounds 64 columns of its sums, lays them into shared
// memory by stmatrix and hands them to the copy engine, which writes whole lines and clips at the edges of D, at the
// right edge in steps of 16 bytes (seen on an H200: rows of 10 bytes got 16). No barrier but
// the warp's, and the warp goes on while the engine reads.
#pragma once

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/matrix.cuh"
#include "ops/gemm/cuda/epilogue.cuh"
#include "ops/gemm/cuda/tensor_maps.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kStoreBytes = kStagedRows * kRowBytes;  // 16 rows of 64 columns; WarpStaging has room for two
inline constexpr int kStoreBuffers = 2;
static_assert(kStoreBuffers * kStoreBytes == sizeof(WarpStaging));

/// Whether this epilogue applies.
inline bool stores_by_tensor(const RowMajorCall& call) {
  const MatrixLayout& d = call.problem.d;
  return call.epilogue().plain && d.dtype != DType::f32 && d.columns % 8 == 0 && d.order == Order::row &&
         supports_map(d, "d");
}

/// The map of D for it. D's rows are contiguous and start at multiples of 16 bytes.
inline tma::TensorMapSpec map_d(const RowMajorCall& call) {
  const MatrixLayout& d = call.problem.d;
  tma::TensorMapSpec spec;
  spec.dtype = tma::element_type(d.dtype);
  spec.address = reinterpret_cast<std::uintptr_t>(call.arguments.d);
  spec.dims = {d.columns, d.rows, d.batch_stride != 0 ? call.problem.batch : 1};
  spec.strides = {d.rows > 1 ? 2 * d.row_stride : (2 * d.columns + 15) / 16 * 16,
                  d.batch_stride != 0 ? 2 * d.batch_stride : 16};
  spec.box = {kStagedColumns, kStagedRows, 1};
  spec.swizzle = tma::Swizzle::b128;
  return spec;
}

/// A warp's 16 x n sums, which begin at (row, column), to D. Before the block ends, and before another use of
/// `staging`, wait_stores_read().
template <int n>
__device__ __forceinline__ void store_tile(const tma::TensorMap& map, const Epilogue& epilogue,
                                           const float (&sums)[n / 2], WarpStaging& staging, int row, int column,
                                           int batch) {
  static_assert(n % kStagedColumns == 0);
  if (row >= epilogue.rows) return;
  const int lane = device::lane_index();
  const int matrix_row = lane % 16;  // matrices 0 and 1: rows 0-7 and 8-15 of one atom; 2 and 3: of the next
#pragma unroll
  for (int chunk = 0; chunk < n / kStagedColumns; ++chunk) {
    const int at = column + chunk * kStagedColumns;
    if (at >= epilogue.columns) return;
    unsigned char* buffer = reinterpret_cast<unsigned char*>(&staging) + chunk % kStoreBuffers * kStoreBytes;
    if (lane == 0) device::wait_stores_read<kStoreBuffers - 1>();
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {  // of atoms of 8 columns
      const float* from = sums + 32 * chunk + 8 * pair;
      const std::uint32_t words[4] = {
          pack(from[0], from[1], epilogue.d_dtype), pack(from[2], from[3], epilogue.d_dtype),
          pack(from[4], from[5], epilogue.d_dtype), pack(from[6], from[7], epilogue.d_dtype)};
      const int atom = 2 * pair + lane / 16;
      device::store_matrices(buffer + matrix_row * kRowBytes + ((atom ^ (matrix_row & 7)) << 4), words);
    }
    device::fence_async_shared();
    __syncwarp();
    if (lane == 0) {
      device::tensor_store<3>(&map, {at, row, batch}, buffer);
      device::commit_stores();
    }
  }
}

}  // namespace tmaops::ops::gemm::cuda
