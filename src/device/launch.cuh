// Launching a kernel from a program of one's own, as <<<>>> does, with clusters and dependent launches. Variants add
// kernels to a Work instead.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace tmaops::device {

struct Launch {
  dim3 grid{1};
  dim3 block{1};
  unsigned cluster = 1;          // blocks per cluster along x; grid.x is a multiple
  std::size_t shared_bytes = 0;  // of dynamic_shared()
  cudaStream_t stream = nullptr;
  bool dependent = false;  // may begin before the kernel in front of it has ended: see wait_for_previous_kernel()
};

/// launch(kernel, {.grid = 12, .block = 128}, arguments...). What a kernel does wrong, cudaDeviceSynchronize() returns;
/// on the executor this function prints it and returns cudaErrorLaunchFailure.
template <class... Parameter, class... Given>
cudaError_t launch(void (*kernel)(Parameter...), const Launch& how, Given&&... given) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  const cudaError_t status =
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared_bytes));
  if (status != cudaSuccess) return status;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {how.cluster, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config{.gridDim = how.grid,
                                  .blockDim = how.block,
                                  .dynamicSmemBytes = how.shared_bytes,
                                  .stream = how.stream,
                                  .attrs = attributes,
                                  .numAttrs = how.dependent ? 2U : 1U};
  const auto call = [&](Parameter... parameter) {
    void* addresses[] = {&parameter...};
    return cudaLaunchKernelExC(&config, function, addresses);
  };
  return call(std::forward<Given>(given)...);
}

}  // namespace tmaops::device
