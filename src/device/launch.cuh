// Launching a kernel from a program of one's own, as <<<>>> does, with clusters. Variants add kernels to a Work
// instead.
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
};

/// launch(kernel, {.grid = 12, .block = 128}, arguments...). What a kernel does wrong, cudaDeviceSynchronize() returns;
/// on the executor this function prints it and returns cudaErrorLaunchFailure.
template <class... Parameter, class... Given>
cudaError_t launch(void (*kernel)(Parameter...), const Launch& how, Given&&... given) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  const cudaError_t status =
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared_bytes));
  if (status != cudaSuccess) return status;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = how.cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = how.grid;
  config.blockDim = how.block;
  config.dynamicSmemBytes = how.shared_bytes;
  config.stream = how.stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  const auto call = [&](Parameter... parameter) {
    void* addresses[] = {&parameter...};
    return cudaLaunchKernelExC(&config, function, addresses);
  };
  return call(std::forward<Given>(given)...);
}

}  // namespace tmaops::device
