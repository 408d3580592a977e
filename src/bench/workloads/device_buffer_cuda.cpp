#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "bench/workloads/device_buffer.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {
namespace {

constexpr std::size_t kDeviceCanaryBytes = 256;
constexpr int kDeviceCanary = 0xA5;

}  // namespace

DeviceBuffer::DeviceBuffer(DType dtype, const Layout& layout, Device device)
    : bytes_(static_cast<std::size_t>(layout.size()) * size_of(dtype)) {
  check_cuda(cudaSetDevice(device.index), "bench");
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes_ + 2 * kDeviceCanaryBytes), "tensor " + layout.shape_text());
  base_ = static_cast<std::byte*>(memory);
  view_ = TensorView(base_ + kDeviceCanaryBytes, dtype, layout, device);
  check_cuda(cudaMemset(base_, kDeviceCanary, kDeviceCanaryBytes), "bench: canaries");
  check_cuda(cudaMemset(base_ + kDeviceCanaryBytes + bytes_, kDeviceCanary, kDeviceCanaryBytes), "bench: canaries");
}

DeviceBuffer::~DeviceBuffer() {
  if (base_ != nullptr) cudaFree(base_);
}

void DeviceBuffer::upload(const void* from) {
  check_cuda(cudaMemcpy(view_.data, from, bytes_, cudaMemcpyHostToDevice), "bench: upload");
}

void DeviceBuffer::download(void* to) const {
  check_cuda(cudaMemcpy(to, view_.data, bytes_, cudaMemcpyDeviceToHost), "bench: download");
}

void DeviceBuffer::poison() {
  check_cuda(cudaMemset(view_.data, 0xFF, bytes_), "bench: poison");
  check_cuda(cudaDeviceSynchronize(), "bench: poison");  // the timer's stream does not wait for the default one
}

bool DeviceBuffer::canaries_intact() const {
  std::array<unsigned char, 2 * kDeviceCanaryBytes> bytes{};
  check_cuda(cudaMemcpy(bytes.data(), base_, kDeviceCanaryBytes, cudaMemcpyDeviceToHost), "bench: canaries");
  check_cuda(cudaMemcpy(bytes.data() + kDeviceCanaryBytes, base_ + kDeviceCanaryBytes + bytes_, kDeviceCanaryBytes,
                        cudaMemcpyDeviceToHost),
             "bench: canaries");
  return std::ranges::all_of(bytes, [](unsigned char byte) { return byte == kDeviceCanary; });
}

}  // namespace tmaops::bench
