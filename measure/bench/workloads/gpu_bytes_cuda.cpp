#include <cuda_runtime_api.h>

#include "bench/workloads/gpu_bytes.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {

std::byte* allocate_on_gpu(std::size_t bytes, Device device, const std::string& what) {
  check_cuda(cudaSetDevice(device.index), "bench");
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), what);
  return static_cast<std::byte*>(memory);
}

void free_on_gpu(std::byte* memory) { cudaFree(memory); }

void fill_on_gpu(void* memory, int byte, std::size_t bytes) {
  check_cuda(cudaMemset(memory, byte, bytes), "bench: fill");
  check_cuda(cudaDeviceSynchronize(), "bench: fill");  // the timer's stream does not wait for the default one
}

void copy_to_gpu(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "bench: upload");
}

void copy_from_gpu(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "bench: download");
}

}  // namespace tmaops::bench
