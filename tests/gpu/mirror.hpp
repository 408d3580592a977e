// A host buffer of an operator test and its copy in device memory.
#pragma once

#include <cuda_runtime.h>

#include "core/cuda_status.hpp"
#include "support/buffers.hpp"

namespace tmaops::test {

/// The host's bytes, canaries included, copied to and from device memory; `shift` elements off their alignment.
class Mirror {
 public:
  explicit Mirror(const Buffer& host, int shift = 0) : host_(host) {
    bytes_ = host.bits().size() + 2 * Buffer::kCanary;
    shift_ = static_cast<std::size_t>(shift) * size_of(host.dtype());
    check_cuda(cudaMalloc(&memory_, bytes_ + shift_ + 16), "cudaMalloc");
    check_cuda(cudaMemset(memory_, 0xA5, bytes_ + shift_ + 16), "cudaMemset");
    check_cuda(cudaMemcpy(start(), raw(host), bytes_, cudaMemcpyHostToDevice), "upload");
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror() { cudaFree(memory_); }

  TensorView view() const { return {start() + Buffer::kCanary, host_.dtype(), host_.layout(), {DeviceType::cuda, 0}}; }
  /// Brings back the host's bytes.
  void reset() const { check_cuda(cudaMemcpy(start(), raw(host_), bytes_, cudaMemcpyHostToDevice), "upload"); }
  Buffer download() const {
    Buffer copy = host_;
    check_cuda(cudaMemcpy(const_cast<unsigned char*>(raw(copy)), start(), bytes_, cudaMemcpyDeviceToHost), "download");
    return copy;
  }

 private:
  static const unsigned char* raw(const Buffer& buffer) {
    return static_cast<const unsigned char*>(buffer.data()) - Buffer::kCanary;
  }
  unsigned char* start() const { return static_cast<unsigned char*>(memory_) + shift_; }

  Buffer host_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t shift_ = 0;
};

}  // namespace tmaops::test
