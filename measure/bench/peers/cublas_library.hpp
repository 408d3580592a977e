// The few functions of cuBLAS and cuBLASLt that the peers call. The libraries are looked for when a peer is first asked
// for, so neither building nor running needs them, and these declarations stand in for their headers. Names, order and
// values are those of cublas_api.h and cublasLt.h, the same in CUDA 12 and 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench::cublas {

using Status = int;                           // cublasStatus_t; 0 is success
using Handle = void*;                         // cublasHandle_t, cublasLtHandle_t
using Descriptor = void*;                     // of a product, a matrix or a preference
inline constexpr int kCompute32F = 68;        // CUBLAS_COMPUTE_32F
inline constexpr int kGemmDefault = -1;       // CUBLAS_GEMM_DEFAULT
inline constexpr int kReal32F = 0;            // CUDA_R_32F
inline constexpr int kTransposeA = 3;         // CUBLASLT_MATMUL_DESC_TRANSA
inline constexpr int kTransposeB = 4;         // CUBLASLT_MATMUL_DESC_TRANSB
inline constexpr int kMaxWorkspaceBytes = 1;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
/// What NVIDIA recommends for Hopper, and what PyTorch gives it.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

struct Algorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

/// libcublas.
struct Library {
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*set_stream)(Handle, Stream);
  Status (*set_workspace)(Handle, void*, std::size_t);
  const char* (*status_text)(Status);
  Status (*gemm)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                 int a_type, int a_leading, const void* b, int b_type, int b_leading, const void* beta, void* c,
                 int c_type, int c_leading, int compute_type, int algorithm);
};

/// libcublasLt.
struct LtLibrary {
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  const char* (*status_text)(Status);
  Status (*product_create)(Descriptor*, int compute_type, int scale_type);
  Status (*product_destroy)(Descriptor);
  Status (*product_set)(Descriptor, int attribute, const void*, std::size_t);
  Status (*matrix_create)(Descriptor*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading);
  Status (*matrix_destroy)(Descriptor);
  Status (*preference_create)(Descriptor*);
  Status (*preference_destroy)(Descriptor);
  Status (*preference_set)(Descriptor, int attribute, const void*, std::size_t);
  Status (*heuristic)(Handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c, Descriptor d,
                      Descriptor preference, int wanted, HeuristicResult* results, int* found);
  Status (*matmul)(Handle, Descriptor product, const void* alpha, const void* a, Descriptor a_matrix, const void* b,
                   Descriptor b_matrix, const void* beta, const void* c, Descriptor c_matrix, void* d,
                   Descriptor d_matrix, const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                   Stream stream);
};

/// Throw Error variant_refuses when the library is not found or lacks a function.
const Library& library();
const LtLibrary& lt_library();

/// A product as these column-major libraries take it: D is row-major, so its transpose B' A' is asked for, with our B
/// as their first operand.
struct Product {
  int rows, columns, inner;      // of the transpose of D: N, M, K
  int transpose_b, transpose_a;  // 0 or 1
  int leading_b, leading_a, leading_d;
  int input_type, output_type;  // cudaDataType
};

/// Throws Error variant_refuses with the reason when the workload is more than a plain product.
Product product_of(const Workload& workload);

/// Throws Error variant_refuses with the library's own words unless the status is success.
void check(Status status, const char* (*status_text)(Status), const std::string& what);

}  // namespace tmaops::bench::cublas
