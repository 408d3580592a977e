// What CUDA answers around TMA, and what is then wrong.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tmaops::cli {

struct CudaResult {
  int number;
  std::string_view driver, runtime;  // names; one may be empty
  std::string_view cause;
};

inline std::span<const CudaResult> cuda_results() {
  static constexpr CudaResult results[] = {
#define TMAOPS_CUDA_RESULT(number, driver, runtime, cause) {number, driver, runtime, cause},
#include "cli/cuda_results.def"
#undef TMAOPS_CUDA_RESULT
  };
  return results;
}

/// Of a number or a name; null where there is none.
inline const CudaResult* find_cuda_result(int number) {
  for (const CudaResult& result : cuda_results())
    if (result.number == number) return &result;
  return nullptr;
}
inline const CudaResult* find_cuda_result(std::string_view name) {
  for (const CudaResult& result : cuda_results())
    if (!name.empty() && (result.driver == name || result.runtime == name)) return &result;
  return nullptr;
}

}  // namespace tmaops::cli
