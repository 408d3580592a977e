// Host twin of src/device/vector.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device/architecture.cuh"

namespace tmaops::device {

__device__ __forceinline__ uint4 load_16(const void* from) { return __ldg(static_cast<const uint4*>(from)); }

__device__ __forceinline__ uint4 load_16_once(const void* from) { return __ldg(static_cast<const uint4*>(from)); }

template <class T>
__device__ __forceinline__ T load_now(const T* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  return *from;
}
__device__ __forceinline__ std::uint32_t load_now(const std::uint16_t* from) { return *from; }

__device__ __forceinline__ void store_16(void* to, const uint4& value) { *static_cast<uint4*>(to) = value; }

__device__ __forceinline__ void store_16_streaming(void* to, const uint4& value) {
  __stcs(static_cast<uint4*>(to), value);
}

__device__ __forceinline__ std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return condition ? yes : no;
}

template <class T>
__device__ __forceinline__ void keep(T*&) {}
__device__ __forceinline__ void keep(int&) {}

template <class Word>
__device__ __forceinline__ void add_words(Word* to, const Word* words) {
  for (int i = 0; i < 4; ++i) atomicAdd(to + i, words[i]);
}

/// The eight numbers in 16 bytes, each atomically.
template <class T>
inline void add_eight(T* to, const uint4& value) {
  T numbers[8];
  __builtin_memcpy(numbers, &value, 16);
  for (int i = 0; i < 8; ++i)
    executor::atomically(to + i, [&](T old) { return T(static_cast<float>(old) + static_cast<float>(numbers[i])); });
}

__device__ __forceinline__ void add_16(float* to, const float4& value) { add_words(to, &value.x); }
__device__ __forceinline__ void add_16(__half* to, const uint4& eight_halves) { add_eight(to, eight_halves); }
__device__ __forceinline__ void add_16(__nv_bfloat16* to, const uint4& eight_bfloats) { add_eight(to, eight_bfloats); }

}  // namespace tmaops::device
