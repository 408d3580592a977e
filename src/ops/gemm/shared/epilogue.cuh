// From a warp's accumulators to D, for every D and every epilogue: 64 columns at a time through 4 KiB of shared memory
// of the warp's own, so that lanes then walk along rows and loops stay rolled whatever the tile. No barrier but the
// warp's.
#pragma once

#include "device/convert.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/call.cuh"

namespace tmaops::ops::gemm {

inline constexpr int kStagedRows = 16;     // a warp's part of a wgmma tile
inline constexpr int kStagedColumns = 64;  // of f32

struct alignas(1024) WarpStaging {
  float accumulators[kStagedRows * kStagedColumns];
};

/// Place of an element in WarpStaging::accumulators. Groups of 8 columns are exchanged by row, so that neither the
/// writes by fragment nor the reads by row meet in a bank.
__device__ __forceinline__ int staged_at(int row, int column) {
  return row * kStagedColumns + (column ^ ((row & 3) << 3));
}

__device__ __forceinline__ float load_float(const void* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f16) return device::widen(static_cast<const __half*>(data)[at]);
  if (dtype == DType::bf16) return device::widen(static_cast<const __nv_bfloat16*>(data)[at]);
  return static_cast<const float*>(data)[at];
}

__device__ __forceinline__ float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0.0F ? 0.0F : x;  // NaN stays NaN
    case Activation::gelu:
      return 0.5F * x * erfcf(x * -0.707106781F);
    case Activation::silu:
      return x / (1.0F + expf(-x));
  }
  return x;
}

__device__ __forceinline__ std::uint32_t pack(float low, float high, DType dtype) {
  if (dtype == DType::f16) return device::pack<__half>(low, high);
  return device::pack<__nv_bfloat16>(low, high);
}

__device__ __forceinline__ void store_float(void* data, DType dtype, std::int64_t at, float value) {
  if (dtype == DType::f16)
    static_cast<__half*>(data)[at] = device::narrow<__half>(value);
  else if (dtype == DType::bf16)
    static_cast<__nv_bfloat16*>(data)[at] = device::narrow<__nv_bfloat16>(value);
  else
    static_cast<float*>(data)[at] = value;
}

/// alpha, C, bias and activation on the staged rows x columns that begin at (row, column) of D.
__device__ __forceinline__ void finish_staged(const Epilogue& epilogue, WarpStaging& staging, int row, int column,
                                              int rows, int columns, std::int64_t batch) {
#pragma unroll 4
  for (int i = device::lane_index(); i < rows * kStagedColumns; i += device::kWarpThreads) {
    const int r = i / kStagedColumns;
    const int c = i % kStagedColumns;
    if (c >= columns) continue;
    float& sum = staging.accumulators[staged_at(r, c)];
    float value = epilogue.alpha * sum;
    if (epilogue.c != nullptr)
      value += epilogue.beta * load_float(epilogue.c, epilogue.c_dtype,
                                          batch * epilogue.c_batch_stride + (row + r) * epilogue.c_row_stride +
                                              (column + c) * epilogue.c_column_stride);
    if (epilogue.bias != nullptr)
      value += load_float(epilogue.bias, epilogue.bias_dtype,
                          (row + r) * epilogue.bias_row_stride + (column + c) * epilogue.bias_column_stride);
    sum = activate(epilogue.activation, value);
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
