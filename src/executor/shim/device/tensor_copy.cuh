// Host twin of src/device/tensor_copy.cuh.
#pragma once

#include "device/barrier.cuh"
#include "device/cache_hint.cuh"

namespace tmaops::device {

template <int rank>
__device__ __forceinline__ void tensor_load(void* to, const void* map, const std::int32_t (&at)[rank],
                                            Barrier& barrier) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_load(to, map, at, rank, &barrier, 0);
}

template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_load(to, map, at, rank, &barrier, executor::kMulticast | blocks);
}

template <int rank>
__device__ __forceinline__ void tensor_load(void* to, const void* map, const std::int32_t (&at)[rank], Barrier& barrier,
                                            CacheHint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_load(to, map, at, rank, &barrier, 0);
}

template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks, CacheHint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_load(to, map, at, rank, &barrier, executor::kMulticast | blocks);
}

template <int rank>
__device__ __forceinline__ void tensor_store(const void* map, const std::int32_t (&at)[rank], const void* from) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_store(map, at, rank, from);
}

template <int rank>
__device__ __forceinline__ void tensor_prefetch(const void* map, const std::int32_t (&)[rank], CacheHint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  executor::tensor_prefetch(map, rank);
}

__device__ __forceinline__ void prefetch_tensor_map(const void*) {}

}  // namespace tmaops::device
