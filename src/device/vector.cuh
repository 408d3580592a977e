// 16-byte global loads, stores and additions (PTX ISA "ld", "st", "red").
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device/architecture.cuh"

namespace tmaops::device {

/// Reads 16 bytes that nothing writes during the kernel (ld.global.nc).
__device__ __forceinline__ uint4 load_16(const void* from) { return __ldg(static_cast<const uint4*>(from)); }

/// The same for bytes read once: they do not displace others in L1 (ld.global.nc.L1::no_allocate).
__device__ __forceinline__ uint4 load_16_once(const void* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(__cvta_generic_to_global(from)));
  return value;
}

/// Reads 4, 8 or 16 bytes at this point of the program (PTX ISA "ld.global"). The compiler may move an ordinary load
/// down to its first use behind a barrier, so that its latency is added to the wait. It may move a read-only load
/// (ld.global.nc) up across wait_for_previous_kernel(), where the bytes may not have been written yet.
template <class T>
__device__ __forceinline__ T load_now(const T* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  T value;
  if constexpr (sizeof(T) == 16) {
    uint4 bits;
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    value = *reinterpret_cast<const T*>(&bits);
  } else if constexpr (sizeof(T) == 4) {
    std::uint32_t bits;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(bits) : "l"(__cvta_generic_to_global(from)) : "memory");
    value = *reinterpret_cast<const T*>(&bits);
  } else {
    std::uint64_t bits;
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(bits) : "l"(__cvta_generic_to_global(from)) : "memory");
    value = *reinterpret_cast<const T*>(&bits);
  }
  return value;
}

/// The same of 2 bytes, with zeros above them: nothing waits for the load but what uses the result.
__device__ __forceinline__ std::uint32_t load_now(const std::uint16_t* from) {
  std::uint32_t value;
  asm volatile("ld.global.u16 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
  return value;
}

/// Writes 16 bytes.
__device__ __forceinline__ void store_16(void* to, const uint4& value) { *static_cast<uint4*>(to) = value; }

/// Writes 16 bytes that are not read again soon (st.global.cs).
__device__ __forceinline__ void store_16_streaming(void* to, const uint4& value) {
  __stcs(static_cast<uint4*>(to), value);
}

/// condition ? yes : no as one instruction (PTX ISA "selp"). Both values are computed first: the compiler cannot turn
/// the choice into a branch, or load only a part of a vector for it.
__device__ __forceinline__ std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  std::uint32_t result;
  asm("{\n .reg .pred p;\n setp.ne.u32 p, %3, 0;\n selp.b32 %0, %1, %2, p;\n}"
      : "=r"(result)
      : "r"(yes), "r"(no), "r"(static_cast<std::uint32_t>(condition)));
  return result;
}

/// Makes the compiler keep a pointer or a number in a register instead of computing it again where it is used.
template <class T>
__device__ __forceinline__ void keep(T*& pointer) {
  asm volatile("" : "+l"(pointer));
}
__device__ __forceinline__ void keep(int& number) { asm volatile("" : "+r"(number)); }

/// Adds four words to global memory, each atomically.
template <class Word>
__device__ __forceinline__ void add_words(Word* to, const Word* words) {
#pragma unroll
  for (int i = 0; i < 4; ++i) atomicAdd(to + i, words[i]);
}

/// Adds 16 bytes to global memory in one instruction, each element atomically (red.global.add.v4.f32 and
/// .noftz.v4.f16x2 / .v4.bf16x2), and word by word before compute capability 9.0. Address a multiple of 16. Sums arrive
/// in any order.
__device__ __forceinline__ void add_16(float* to, const float4& value) {
  if constexpr (kSinceHopper)
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
  else
    add_words(to, &value.x);
}
__device__ __forceinline__ void add_16(__half* to, const uint4& eight_halves) {
  if constexpr (kSinceHopper)
    asm volatile(
        "red.relaxed.gpu.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
        "r"(eight_halves.x), "r"(eight_halves.y), "r"(eight_halves.z), "r"(eight_halves.w)
        : "memory");
  else
    add_words(reinterpret_cast<__half2*>(to), reinterpret_cast<const __half2*>(&eight_halves));
}
__device__ __forceinline__ void add_16(__nv_bfloat16* to, const uint4& eight_bfloats) {
  if constexpr (kSinceHopper)
    asm volatile(
        "red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
        "r"(eight_bfloats.x), "r"(eight_bfloats.y), "r"(eight_bfloats.z), "r"(eight_bfloats.w)
        : "memory");
  else
    add_words(reinterpret_cast<__nv_bfloat162*>(to), reinterpret_cast<const __nv_bfloat162*>(&eight_bfloats));
}

}  // namespace tmaops::device
