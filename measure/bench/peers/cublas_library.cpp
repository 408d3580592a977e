#include "bench/peers/cublas_library.hpp"

#include <cstdlib>
#include <limits>
#include <vector>

#include "bench/peers/peers.hpp"

namespace tmaops::bench::cublas {
namespace {

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

Found::Found(const SharedLibrary& library, const char* name) : address_(library.function<void()>(name)) {
  if (address_ == nullptr) peer_refuses("cuBLAS", library.name() + " with the function " + name);
}

Product product_of(const Workload& workload, bool plain) {
  const nlohmann::json parameters = workload.peer_parameters();
  const bool has_more = parameters["alpha"] != 1.0 || parameters["beta"] != 0.0 || parameters["bias"] != "none" ||
                        parameters["activation"] != "none";
  if ((plain && has_more) || parameters["batched"] == true) peer_refuses("cuBLAS", "a plain product of two matrices");
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
