// Where calls on a GPU get the device memory that they need beside their tensors.
#pragma once

#include <cstddef>

#include "tmaops/tensor.hpp"

namespace tmaops {

/// An allocator of device memory, as a framework has one. Both functions are given, or neither: then the library has a
/// memory pool of its own (cudaMallocFromPoolAsync), which keeps at most 256 MiB of what was given back.
struct Allocator {
  void* context = nullptr;  // passed to both functions
  /// Returns `bytes` bytes (above 0) of memory of the tensors' device, at a multiple of 256 bytes, for work that is
  /// enqueued on `stream` from now on. Null: there is none, and the call throws Error device_out_of_memory.
  void* (*allocate)(void* context, std::size_t bytes, Stream stream) = nullptr;
  /// Takes memory back. Work that is enqueued on `stream` already may still use it. Must not throw.
  void (*release)(void* context, void* memory, std::size_t bytes, Stream stream) = nullptr;
};

}  // namespace tmaops
