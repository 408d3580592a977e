// The few functions of cuBLAS and cuBLASLt that the peers call. The libraries are looked for when a peer is first asked
// for, so neither building nor running needs them, and these declarations stand in for their headers. Names, order and
// values are those of cublas_api.h and cublasLt.h, the same in CUDA 12 and 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/measure/shared_library.hpp"
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
inline constexpr int kEpilogue = 7;           // CUBLASLT_MATMUL_DESC_EPILOGUE
inline constexpr int kBiasPointer = 8;        // CUBLASLT_MATMUL_DESC_BIAS_POINTER
inline constexpr int kPlainEpilogue = 1;      // CUBLASLT_EPILOGUE_DEFAULT
inline constexpr int kRelu = 2;               // CUBLASLT_EPILOGUE_RELU
inline constexpr int kBias = 4;               // CUBLASLT_EPILOGUE_BIAS; with RELU: the sum
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

/// A library by its name with the newest major version first. Throws Error variant_refuses when it is not found.
SharedLibrary open_library(const std::string& name);
/// A function of it. Throws Error variant_refuses where it lacks one of this name.
class Found {
 public:
  Found(const SharedLibrary& library, const char* name);
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor): to the type of the member it is for
    return reinterpret_cast<Function*>(address_);
  }

 private:
  void (*address_)();
};

struct Library {
  SharedLibrary from = open_library("libcublas");
  Status (*create)(Handle*) = Found(from, "cublasCreate_v2");
  Status (*destroy)(Handle) = Found(from, "cublasDestroy_v2");
  Status (*set_stream)(Handle, Stream) = Found(from, "cublasSetStream_v2");
  Status (*set_workspace)(Handle, void*, std::size_t) = Found(from, "cublasSetWorkspace_v2");
  const char* (*status_text)(Status) = Found(from, "cublasGetStatusString");
  Status (*gemm)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                 int a_type, int a_leading, const void* b, int b_type, int b_leading, const void* beta, void* c,
                 int c_type, int c_leading, int compute_type, int algorithm) = Found(from, "cublasGemmEx");
};

struct LtLibrary {
  SharedLibrary from = open_library("libcublasLt");
  Status (*create)(Handle*) = Found(from, "cublasLtCreate");
  Status (*destroy)(Handle) = Found(from, "cublasLtDestroy");
  const char* (*status_text)(Status) = Found(from, "cublasLtGetStatusString");
  Status (*product_create)(Descriptor*, int compute_type, int scale_type) = Found(from, "cublasLtMatmulDescCreate");
  Status (*product_destroy)(Descriptor) = Found(from, "cublasLtMatmulDescDestroy");
  Status (*product_set)(Descriptor, int attribute, const void*, std::size_t) = Found(from,
                                                                                     "cublasLtMatmulDescSetAttribute");
  Status (*matrix_create)(Descriptor*, int type, std::uint64_t rows, std::uint64_t columns,
                          std::int64_t leading) = Found(from, "cublasLtMatrixLayoutCreate");
  Status (*matrix_destroy)(Descriptor) = Found(from, "cublasLtMatrixLayoutDestroy");
  Status (*preference_create)(Descriptor*) = Found(from, "cublasLtMatmulPreferenceCreate");
  Status (*preference_destroy)(Descriptor) = Found(from, "cublasLtMatmulPreferenceDestroy");
  Status (*preference_set)(Descriptor, int attribute, const void*,
                           std::size_t) = Found(from, "cublasLtMatmulPreferenceSetAttribute");
  Status (*heuristic)(Handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c, Descriptor d,
                      Descriptor preference, int wanted, HeuristicResult* results,
                      int* found) = Found(from, "cublasLtMatmulAlgoGetHeuristic");
  Status (*matmul)(Handle, Descriptor product, const void* alpha, const void* a, Descriptor a_matrix, const void* b,
                   Descriptor b_matrix, const void* beta, const void* c, Descriptor c_matrix, void* d,
                   Descriptor d_matrix, const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                   Stream stream) = Found(from, "cublasLtMatmul");
};

/// A product as these column-major libraries take it: D is row-major, so its transpose B' A' is asked for, with our B
/// as their first operand.
struct Product {
  int rows, columns, inner;      // of the transpose of D: N, M, K
  int transpose_b, transpose_a;  // 0 or 1
  int leading_b, leading_a, leading_d;
  int input_type, output_type;  // cudaDataType
};

/// Throws Error variant_refuses with the reason when the workload is more than a plain product of two matrices. Not
/// `plain`: what becomes of the product is left to the caller.
Product product_of(const Workload& workload, bool plain = true);

/// Throws Error variant_refuses with the library's own words unless the status is success.
void check(Status status, const char* (*status_text)(Status), const std::string& what);

}  // namespace tmaops::bench::cublas
