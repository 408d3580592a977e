// Shared memory: its 32-bit addresses, and the functions that give a block its own: one of a size that the launch asks
// for, one of a fixed size.
#pragma once

#include <cstdint>

namespace tmaops::device {

/// Every swizzle pattern starts in phase at a multiple of 1024 B (128B: 1024, 64B: 512, 32B: 256).
inline constexpr int kDynamicSharedAlignment = 1024;
/// Most shared memory one block can have on compute capability 9.0, static and dynamic together, in bytes.
inline constexpr int kMaxSharedBytes = 227 * 1024;

/// Address in the shared window, as PTX operands take it (PTX ISA "Shared State Space").
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Reads 4 bytes at an address in the shared window (PTX ISA "ld").
__device__ __forceinline__ std::uint32_t load_shared(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// Writes 4 bytes at this point of the program; the compiler neither moves nor drops the write (PTX ISA "st").
__device__ __forceinline__ void store_shared(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

/// Shared memory of a fixed size, not initialised: a T of the block at a multiple of `alignment`. Every call in a
/// kernel with the same arguments gives the same T. Kernels declare no `__shared__` variables themselves, so that the
/// layer alone decides where they lie.
template <class T, int alignment = alignof(T)>
__device__ __forceinline__ T& block_shared() {
  __shared__ alignas(alignment) T variable;
  return variable;
}

/// While one lives and the condition holds, its thread may read shared memory that nothing has written, because nothing
/// is done with what it reads. It says so to the executor (docs/executor.md) and compiles to nothing.
struct UnwrittenReads {
  __device__ __forceinline__ explicit UnwrittenReads(bool condition) { (void)condition; }
};

/// The block's dynamic shared memory as a T. A kernel names one T, and the launch passes sizeof(T) as shared_bytes.
/// `most` is the largest size allowed, in bytes: in the kernels of a variant kSite.smem, the smem(...) of its line.
template <class T, int most = kMaxSharedBytes>
__device__ __forceinline__ T& dynamic_shared() {
  static_assert(alignof(T) <= kDynamicSharedAlignment, "dynamic shared memory is aligned to 1024 bytes, no more");
  static_assert(sizeof(T) <= kMaxSharedBytes,
                "more shared memory than a block can have (227 KiB): fewer stages or smaller tiles");
  static_assert(sizeof(T) <= most, "more shared memory than smem(...) in variants.def declares");
  extern __shared__ __align__(kDynamicSharedAlignment) unsigned char tmaops_dynamic_shared[];
  return *reinterpret_cast<T*>(tmaops_dynamic_shared);
}

}  // namespace tmaops::device
