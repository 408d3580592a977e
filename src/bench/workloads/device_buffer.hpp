// Memory of one tensor on a GPU.
#pragma once

#include <cstddef>
#include <utility>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Memory of one tensor on a GPU, between canaries of 256 bytes, so that the tensor starts as cudaMalloc would align
/// it.
class DeviceBuffer {
 public:
  /// Throws Error device_out_of_memory.
  DeviceBuffer(DType dtype, const Layout& layout, Device device);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_), view_(other.view_) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(view_, other.view_);
    return *this;
  }

  TensorView view() const { return view_; }
  void upload(const void* from);
  void download(void* to) const;
  /// Fills the tensor with 0xFF bytes.
  void poison();
  bool canaries_intact() const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  TensorView view_{};
};

}  // namespace tmaops::bench
