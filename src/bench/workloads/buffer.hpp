// Memory of one tensor, between canaries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Memory for a dense tensor (any order of its dimensions), 64-byte aligned, between 64 canary bytes on each side.
/// The system hands out pages when they are first written, so a buffer that is never filled costs two. From 4 MiB on it
/// asks for huge pages, as NumPy's arrays do.
class Buffer {
 public:
  Buffer() = default;
  /// Throws Error out_of_memory.
  Buffer(DType dtype, const Layout& layout);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  TensorView view() const;
  std::size_t bytes() const { return bytes_; }
  /// Fills the tensor with 0xFF bytes: a NaN in every floating-point type, and one that no arithmetic produces.
  void poison();
  bool canaries_intact() const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;  // of the tensor
  std::size_t mapped_ = 0;
  DType dtype_ = DType::f32;
  Layout layout_{};
};

/// Memory that can be had without pushing other processes out: MemAvailable of /proc/meminfo, or the cgroup's rest.
std::int64_t available_memory();

}  // namespace tmaops::bench
