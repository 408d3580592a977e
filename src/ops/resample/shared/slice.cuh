// Runs of rows or timestamps as the copy engine takes them: addresses and sizes are multiples of 16 bytes, whatever the
// rows are, and never outside the tensor.
#pragma once

#include "device/bulk_copy.cuh"
#include "ops/resample/shared/window.cuh"

namespace tmaops::ops::resample::gpu {

/// A copy that holds samples `held`, the first of them `shift` bytes into it.
struct Slice {
  const unsigned char* from = nullptr;
  std::uint32_t bytes = 0;
  Range held{};
  int shift = 0;
};

/// `zero` is the address of sample 0. The ends are rounded outwards to 16 bytes, but inwards where that would leave the
/// memory of the tensor; the samples cut off are not held.
__device__ __forceinline__ Slice slice_of(const unsigned char* zero, std::int64_t stride, Range wanted,
                                          const MemoryRange& memory) {
  const auto address = [](const unsigned char* at) { return reinterpret_cast<std::uintptr_t>(at); };
  const std::uintptr_t first = address(zero) + static_cast<std::uintptr_t>(wanted.first * stride);
  const std::uintptr_t last = first + static_cast<std::uintptr_t>(wanted.count * stride);
  std::uintptr_t low = first & ~std::uintptr_t{15};
  std::uintptr_t high = (last + 15) & ~std::uintptr_t{15};
  if (low < address(memory.begin)) low += 16;
  if (high > address(memory.end)) high -= 16;
  Slice slice;
  if (wanted.count <= 0 || high <= low) return slice;
  slice.held = wanted;
  std::uintptr_t held = first;
  for (; held < low && slice.held.count > 0; held += static_cast<std::uintptr_t>(stride)) {
    ++slice.held.first;
    --slice.held.count;
  }
  for (std::uintptr_t top = last; top > high && slice.held.count > 0; top -= static_cast<std::uintptr_t>(stride))
    --slice.held.count;
  slice.from = reinterpret_cast<const unsigned char*>(low);
  slice.bytes = static_cast<std::uint32_t>(high - low);
  slice.shift = static_cast<int>(held - low);
  return slice;
}

/// The copy of a window of timestamps, and of rows of any width.
template <class Time>
__device__ __forceinline__ Slice time_slice(const Call& call, const Trajectory<Time>& of, Range wanted) {
  return slice_of(reinterpret_cast<const unsigned char*>(of.timestamps), static_cast<std::int64_t>(sizeof(Time)),
                  wanted, call.time_memory);
}
__device__ __forceinline__ Slice row_slice(const Call& call, const unsigned char* values, int width, Range wanted) {
  return slice_of(values, static_cast<std::int64_t>(width), wanted, call.value_memory);
}

/// Which samples a copy in shared memory holds, and at which byte they start.
struct Held {
  Range range{};
  int shift = 0;
};

/// Issues the copy; one thread. The barrier's phase ends when the bytes are there.
__device__ __forceinline__ void load_slice(void* to, const Slice& slice, device::Barrier& ready) {
  device::arrive_expect_bytes(ready, slice.bytes);
  if (slice.bytes > 0) device::bulk_load(to, slice.from, slice.bytes, ready);
}

}  // namespace tmaops::ops::resample::gpu
