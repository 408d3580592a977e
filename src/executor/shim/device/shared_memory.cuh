// Host twin of src/device/shared_memory.cuh.
#pragma once

#include <cstdint>

namespace tmaops::device {

inline constexpr int kDynamicSharedAlignment = 1024;
inline constexpr int kMaxSharedBytes = 227 * 1024;

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return executor::shared_address(pointer);
}

__device__ __forceinline__ std::uint32_t load_shared(std::uint32_t address) {
  return *static_cast<const std::uint32_t*>(executor::shared_pointer(address));
}

__device__ __forceinline__ void store_shared(std::uint32_t address, std::uint32_t word) {
  *static_cast<std::uint32_t*>(executor::shared_pointer(address)) = word;
}

template <class T, int alignment = alignof(T)>
__device__ __forceinline__ T& block_shared() {
  static const char key = 0;  // its address is that of this instantiation
  return *static_cast<T*>(executor::block_shared(&key, sizeof(T), alignment));
}

struct UnwrittenReads {
  __device__ __forceinline__ explicit UnwrittenReads(bool condition) {
    allowed = condition ? 1 : 0;
    executor::allow_unwritten_reads(allowed);
  }
  UnwrittenReads(const UnwrittenReads&) = delete;
  UnwrittenReads& operator=(const UnwrittenReads&) = delete;
  __device__ __forceinline__ ~UnwrittenReads() { executor::allow_unwritten_reads(-allowed); }
  int allowed;
};

template <class T, int most = kMaxSharedBytes>
__device__ __forceinline__ T& dynamic_shared() {
  static_assert(alignof(T) <= kDynamicSharedAlignment, "dynamic shared memory is aligned to 1024 bytes, no more");
  static_assert(sizeof(T) <= kMaxSharedBytes,
                "more shared memory than a block can have (227 KiB): fewer stages or smaller tiles");
  static_assert(sizeof(T) <= most, "more shared memory than smem(...) in variants.def declares");
  return *static_cast<T*>(executor::dynamic_shared());
}

}  // namespace tmaops::device
