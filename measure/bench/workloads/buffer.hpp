// Memory of one tensor, between canaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Memory for a dense tensor (any order of its dimensions) on the host or on a GPU. The canaries on each side are 64
/// bytes, and on a GPU 256, so that the tensor starts as cudaMalloc would align it. The system hands out the host's
/// pages when they are first written, so a buffer there that is never filled costs two. From 4 MiB on it asks for huge
/// pages, as NumPy's arrays do.
class Buffer {
 public:
  Buffer() = default;
  /// Throws Error out_of_memory and device_out_of_memory.
  Buffer(DType dtype, const Layout& layout, Device device = {});

  TensorView view() const { return view_; }
  std::size_t bytes() const { return bytes_; }
  /// Copies the whole tensor from and to memory of the host.
  void upload(const void* from) const;
  void download(void* to) const;
  /// Fills the tensor with 0xFF bytes: a NaN in every floating-point type, and one that no arithmetic produces.
  void poison() const;
  bool canaries_intact() const;

 private:
  bool on_gpu() const { return view_.device.type == DeviceType::cuda; }

  std::unique_ptr<std::byte, std::function<void(std::byte*)>> base_;
  std::size_t bytes_ = 0;  // of the tensor
  TensorView view_{};
};

/// Memory that can be had without pushing other processes out: MemAvailable of /proc/meminfo, or the cgroup's rest.
std::int64_t available_memory();

}  // namespace tmaops::bench
