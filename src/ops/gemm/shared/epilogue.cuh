// From a warp's accumulators to D, for every D and every epilogue: 64 columns at a time through 4 KiB of shared memory
// of the warp's own, so that lanes then walk along rows and loops stay rolled whatever the tile. No barrier but the
// warp's.
#pragma once

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/epilogue_values.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kStagedColumns = 64;  // of f32

struct alignas(1024) WarpStaging {
  float accumulators[kStagedRows * kStagedColumns];
};

/// Place of an element in WarpStaging::accumulators. Groups of 8 columns are exchanged by row, so that neither the
/// writes by fragment nor the reads by row meet in a bank.
__device__ __forceinline__ int staged_at(int row, int column) {
  return row * kStagedColumns + (column ^ ((row & 3) << 3));
}

/// alpha, C, bias and activation on the staged rows x columns that begin at (row, column) of D. A lane has four columns
/// of every second row.
__device__ __forceinline__ void finish_staged(const Epilogue& epilogue, WarpStaging& staging, int row, int column,
                                              int rows, int columns, std::int64_t batch) {
  constexpr int kWidth = 4;
  constexpr int kGroups = kStagedColumns / kWidth;
  const int first = device::lane_index() % kGroups * kWidth;
  const int count = min(kWidth, columns - first);
  if (count <= 0) return;
  const auto bias_at = [&](int r, int j) {
    return load_float(epilogue.bias, epilogue.bias_dtype,
                      (row + r) * epilogue.bias_row_stride + (column + first + j) * epilogue.bias_column_stride);
  };
  const bool by_row = epilogue.bias_row_stride != 0;
  float of_columns[kWidth] = {};
#pragma unroll
  for (int j = 0; j < kWidth; ++j)
    if (epilogue.bias != nullptr && !by_row && j < count) of_columns[j] = bias_at(0, j);
#pragma unroll 1
  for (int r = device::lane_index() / kGroups; r < rows; r += device::kWarpThreads / kGroups) {
    float4& sums = *reinterpret_cast<float4*>(staging.accumulators + staged_at(r, first));
    float value[kWidth] = {sums.x, sums.y, sums.z, sums.w};
    const float of_row = by_row ? bias_at(r, 0) : 0.0F;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      float added = of_columns[j] + of_row;
      if (epilogue.c != nullptr && j < count)
        added = fmaf(epilogue.beta,
                     load_float(epilogue.c, epilogue.c_dtype,
                                batch * epilogue.c_batch_stride + (row + r) * epilogue.c_row_stride +
                                    (column + first + j) * epilogue.c_column_stride),
                     added);
      value[j] = activate(epilogue.activation, fmaf(epilogue.alpha, value[j], added));
    }
    sums = {value[0], value[1], value[2], value[3]};
  }
}

/// Sixteen bytes a lane of the staged rows, to rows of D that start at multiples of 16 bytes. width: elements in 16
/// bytes.
template <int width>
__device__ __forceinline__ void write_vectors(const Epilogue& epilogue, const WarpStaging& staging, std::int64_t first,
                                              int rows, int columns) {
  constexpr int kGroups = kStagedColumns / width;
  constexpr int kRowsAtOnce = device::kWarpThreads / kGroups;
  const int lane = device::lane_index();
  const int c = lane % kGroups * width;
#pragma unroll 4
  for (int r = lane / kGroups; r < kStagedRows; r += kRowsAtOnce) {
    if (r >= rows) continue;
    const std::int64_t at = first + r * epilogue.d_row_stride + c;
    const float* from = staging.accumulators + staged_at(r, c);
    const device::UnwrittenReads left_out(c + width > columns);  // what lies behind the last column is not used
    const float4 low = *reinterpret_cast<const float4*>(from);
    if (c + width > columns) {
      for (int j = 0; c + j < columns; ++j) store_float(epilogue.d, epilogue.d_dtype, at + j, from[j]);
    } else if constexpr (width == 4) {
      *reinterpret_cast<float4*>(static_cast<float*>(epilogue.d) + at) = low;
    } else {
      const float4 high = *reinterpret_cast<const float4*>(from + 4);
      device::store_16(static_cast<__half*>(epilogue.d) + at,
                       make_uint4(pack(low.x, low.y, epilogue.d_dtype), pack(low.z, low.w, epilogue.d_dtype),
                                  pack(high.x, high.y, epilogue.d_dtype), pack(high.z, high.w, epilogue.d_dtype)));
    }
  }
}

/// Rounds the staged values and writes them: 16 bytes a lane where D allows, element by element otherwise.
__device__ __forceinline__ void write_staged(const Epilogue& epilogue, const WarpStaging& staging, int row, int column,
                                             int rows, int columns, std::int64_t batch) {
  const std::int64_t first =
      batch * epilogue.d_batch_stride + row * epilogue.d_row_stride + column * epilogue.d_column_stride;
  if (epilogue.vectors && epilogue.d_dtype == DType::f32) {
    write_vectors<4>(epilogue, staging, first, rows, columns);
  } else if (epilogue.vectors) {
    write_vectors<8>(epilogue, staging, first, rows, columns);
  } else {
#pragma unroll 1
    for (int i = device::lane_index(); i < rows * kStagedColumns; i += device::kWarpThreads) {
      const int r = i / kStagedColumns;
      const int c = i % kStagedColumns;
      if (c < columns)
        store_float(epilogue.d, epilogue.d_dtype, first + r * epilogue.d_row_stride + c * epilogue.d_column_stride,
                    staging.accumulators[staged_at(r, c)]);
    }
  }
}

/// Stages columns 64 chunk to 64 chunk + 63 of a warp's accumulators; chunk may be known at run time only.
template <int n>
__device__ __forceinline__ void stage_accumulators(const float (&accumulators)[n / 2], WarpStaging& staging,
                                                   int chunk) {
  const int row = device::lane_index() / 4;
  const int pair = device::lane_index() % 4 * 2;
#pragma unroll
  for (int atom = 0; atom < n / 8; ++atom)
    if (atom / 8 == chunk) {
      const int column = atom % 8 * 8 + pair;
      const float* at = accumulators + 4 * atom;
      *reinterpret_cast<float2*>(staging.accumulators + staged_at(row, column)) = make_float2(at[0], at[1]);
      *reinterpret_cast<float2*>(staging.accumulators + staged_at(row + 8, column)) = make_float2(at[2], at[3]);
    }
}

/// Columns 64 chunk to 64 chunk + 63 of a warp's accumulators to D: what begins at (row, column) there and has at most
/// `columns` columns. What lies outside D is left out.
template <int n>
__device__ __forceinline__ void write_chunk(const Epilogue& epilogue, const float (&accumulators)[n / 2],
                                            WarpStaging& staging, int chunk, int row, int column, int columns,
                                            std::int64_t batch) {
  const int rows = min(kStagedRows, epilogue.rows - row);
  columns = min(columns, epilogue.columns - column);
  if (rows <= 0 || columns <= 0) return;
  stage_accumulators<n>(accumulators, staging, chunk);
  __syncwarp();
  if (!epilogue.plain) {
    finish_staged(epilogue, staging, row, column, rows, columns, batch);
    __syncwarp();
  }
  write_staged(epilogue, staging, row, column, rows, columns, batch);
  __syncwarp();
}

/// A warp's 16 x n accumulators, which begin at (row, column) of D, to D.
template <int n>
__device__ __forceinline__ void write_tile(const Epilogue& epilogue, const float (&accumulators)[n / 2],
                                           WarpStaging& staging, int row, int column, std::int64_t batch) {
#pragma unroll 1
  for (int at = 0; at < n; at += kStagedColumns)
    write_chunk<n>(epilogue, accumulators, staging, at / kStagedColumns, row, column + at, min(kStagedColumns, n - at),
                   batch);
}

}  // namespace tmaops::ops::gemm
