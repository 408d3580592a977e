// Tables that were made on the host, in device memory. They travel as parameters of a kernel: a copy from host memory
// would make the call wait, and a captured one would read that memory whenever the graph runs.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "core/work.hpp"

namespace tmaops {

/// What fits in the 4,096 bytes of parameters that every driver takes, beside an address and a length.
struct UploadedBytes {
  static constexpr std::size_t kMost = 4064;
  unsigned char at[kMost];
};

static __global__ void write_bytes(unsigned char* to, unsigned count, const __grid_constant__ UploadedBytes bytes) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) to[i] = bytes.at[i];
}

/// A copy of host bytes in device memory that lives as long as the work's workspace.
inline unsigned char* upload(Work& work, std::span<const unsigned char> bytes) {
  unsigned char* const to = work.allocate(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += UploadedBytes::kMost) {
    UploadedBytes part;
    const std::size_t count = std::min(bytes.size() - at, UploadedBytes::kMost);
    std::memcpy(part.at, bytes.data() + at, count);
    work.prepare(write_bytes, {.block = 256}, to + at, static_cast<unsigned>(count), part);
  }
  return to;
}

}  // namespace tmaops
