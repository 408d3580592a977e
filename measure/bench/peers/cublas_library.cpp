#include "bench/peers/cublas_library.hpp"

#include <cstdlib>
#include <limits>
#include <vector>

#include "bench/measure/shared_library.hpp"
#include "bench/peers/peers.hpp"

namespace tmaops::bench::cublas {
namespace {

/// A library by its name with the newest major version first: where the loader looks, then in the toolkit's folder.
SharedLibrary open_library(const std::string& name) {
  std::vector<std::string> folders{""};
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"})
    if (const char* root = std::getenv(variable); root != nullptr && *root != '\0')
      folders.push_back(std::string(root) + "/lib64/");
  folders.emplace_back("/usr/local/cuda/lib64/");
  std::vector<std::string> paths;
  for (const std::string& folder : folders)
    for (const char* version : {".so.13", ".so.12"}) paths.push_back(folder + name + version);
  SharedLibrary library(paths);
  if (!library)
    peer_refuses("cuBLAS",
                 name + ".so.13 or .so.12 (" + library.problem() +
                     "): install libcublas-13-0, or nvidia-cublas from PyPI with its lib folder in LD_LIBRARY_PATH");
  return library;
}

template <class Function>
void find(const SharedLibrary& library, const char* name, Function*& to) {
  to = library.function<Function>(name);
  if (to == nullptr) peer_refuses("cuBLAS", library.name() + " with the function " + name);
}

/// cudaDataType of an element type.
int cuda_data_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2;
    case DType::bf16:
      return 14;
    default:
      return kReal32F;
  }
}

}  // namespace

const Library& library() {
  static const Library loaded = [] {
    const SharedLibrary opened = open_library("libcublas");
    Library made{};
    find(opened, "cublasCreate_v2", made.create);
    find(opened, "cublasDestroy_v2", made.destroy);
    find(opened, "cublasSetStream_v2", made.set_stream);
    find(opened, "cublasSetWorkspace_v2", made.set_workspace);
    find(opened, "cublasGetStatusString", made.status_text);
    find(opened, "cublasGemmEx", made.gemm);
    return made;
  }();
  return loaded;
}

const LtLibrary& lt_library() {
  static const LtLibrary loaded = [] {
    const SharedLibrary opened = open_library("libcublasLt");
    LtLibrary made{};
    find(opened, "cublasLtCreate", made.create);
    find(opened, "cublasLtDestroy", made.destroy);
    find(opened, "cublasLtGetStatusString", made.status_text);
    find(opened, "cublasLtMatmulDescCreate", made.product_create);
    find(opened, "cublasLtMatmulDescDestroy", made.product_destroy);
    find(opened, "cublasLtMatmulDescSetAttribute", made.product_set);
    find(opened, "cublasLtMatrixLayoutCreate", made.matrix_create);
    find(opened, "cublasLtMatrixLayoutDestroy", made.matrix_destroy);
    find(opened, "cublasLtMatmulPreferenceCreate", made.preference_create);
    find(opened, "cublasLtMatmulPreferenceDestroy", made.preference_destroy);
    find(opened, "cublasLtMatmulPreferenceSetAttribute", made.preference_set);
    find(opened, "cublasLtMatmulAlgoGetHeuristic", made.heuristic);
    find(opened, "cublasLtMatmul", made.matmul);
    return made;
  }();
  return loaded;
}

Product product_of(const Workload& workload) {
  const nlohmann::json parameters = workload.peer_parameters();
  if (parameters["alpha"] != 1.0 || parameters["beta"] != 0.0 || parameters["bias"] != "none" ||
      parameters["activation"] != "none" || parameters["batched"] == true)
    peer_refuses("cuBLAS", "a plain product of two matrices");
  const TensorView a = workload.tensor("a", 0);
  const TensorView b = workload.tensor("b", 0);
  const TensorView d = workload.tensor("d", 0);
  for (const TensorView& tensor : {a, b, d}) {
    if (tensor.size() == 0) peer_refuses("cuBLAS", "a product that is not empty");
    for (int i = 0; i < 2; ++i)
      if (tensor.shape[static_cast<std::size_t>(i)] > std::numeric_limits<int>::max())
        peer_refuses("cuBLAS", "extents below 2^31");
  }
  const std::string mode = parameters["mode"];
  const auto extent = [](std::int64_t value) { return static_cast<int>(value); };
  const bool a_rows = mode[0] == 'R';
  const bool b_rows = mode[1] == 'R';
  return {.rows = extent(d.shape[1]),
          .columns = extent(d.shape[0]),
          .inner = extent(a.shape[1]),
          .transpose_b = b_rows ? 0 : 1,
          .transpose_a = a_rows ? 0 : 1,
          .leading_b = extent(b_rows ? b.shape[1] : b.shape[0]),
          .leading_a = extent(a_rows ? a.shape[1] : a.shape[0]),
          .leading_d = extent(d.shape[1]),
          .input_type = cuda_data_type(a.dtype),
          .output_type = cuda_data_type(d.dtype)};
}

void check(Status status, const char* (*status_text)(Status), const std::string& what) {
  if (status != 0) peer_refuses("cuBLAS", what + " (it says: " + status_text(status) + ")");
}

}  // namespace tmaops::bench::cublas
