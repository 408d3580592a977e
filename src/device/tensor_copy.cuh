// Boxes of a tensor described by a tensor map, copied by the copy engine (PTX ISA "cp.async.bulk.tensor").
//
// Coordinates are signed element indices, innermost dimension first, the first one a multiple of 16 bytes (otherwise:
// "illegal instruction"); a load fills what lies outside the tensor, a store
// leaves it out. The shared address is a multiple of 128 B (of 1024, 512, 256 B for a 128B, 64B, 32B swizzle to start
// in phase), and the barrier expects the bytes of the whole box, filled part included. The map is a `const
// __grid_constant__ CUtensorMap` parameter. One thread issues.
#pragma once

#include <cuda/ptx>

#include "device/barrier.cuh"
#include "device/cache_hint.cuh"

namespace tmaops::device {

/// global -> shared of this block, tiled mode, rank 1 to 5: tensor_load(tile, &map, {c, w, h}, barrier).
template <int rank>
__device__ __forceinline__ void tensor_load(void* to, const void* map, const std::int32_t (&at)[rank],
                                            Barrier& barrier) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, map, at, &barrier.state);
}

/// The same into the same place of every block of `blocks` (bit r = cluster rank r), each completing on its own barrier
/// at the same place. Compute capability 9.0a and 10.0a only.
template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, map, at, &barrier.state,
                                  blocks);
}

/// The same with a cache hint, which CCCL has no wrapper for.
template <int rank>
__device__ __forceinline__ void tensor_load(void* to, const void* map, const std::int32_t (&at)[rank], Barrier& barrier,
                                            CacheHint hint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  const std::uint32_t address = shared_address(to);
  const std::uint32_t signal = shared_address(&barrier);
  const auto descriptor = reinterpret_cast<std::uint64_t>(map);
  const auto policy = static_cast<std::uint64_t>(hint);
#define TMAOPS_LOAD(dimensions, coordinates, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." dimensions                                                                 \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, " coordinates \
               "], [%2], %3;" ::"r"(address),                                                                     \
               "l"(descriptor), "r"(signal), "l"(policy), __VA_ARGS__                                             \
               : "memory")
  if constexpr (rank == 1) TMAOPS_LOAD("1d", "{%4}", "r"(at[0]));
  if constexpr (rank == 2) TMAOPS_LOAD("2d", "{%4, %5}", "r"(at[0]), "r"(at[1]));
  if constexpr (rank == 3) TMAOPS_LOAD("3d", "{%4, %5, %6}", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  if constexpr (rank == 4) TMAOPS_LOAD("4d", "{%4, %5, %6, %7}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  if constexpr (rank == 5)
    TMAOPS_LOAD("5d", "{%4, %5, %6, %7, %8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#undef TMAOPS_LOAD
}

/// Multicast with a cache hint.
template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks, CacheHint hint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  const std::uint32_t address = shared_address(to);
  const std::uint32_t signal = shared_address(&barrier);
  const auto descriptor = reinterpret_cast<std::uint64_t>(map);
  const auto policy = static_cast<std::uint64_t>(hint);
#define TMAOPS_LOAD(dimensions, coordinates, ...)                                                                   \
  asm volatile("cp.async.bulk.tensor." dimensions                                                                   \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], " \
               "[%1, " coordinates "], [%2], %4, %3;" ::"r"(address),                                               \
               "l"(descriptor), "r"(signal), "l"(policy), "h"(blocks), __VA_ARGS__                                  \
               : "memory")
  if constexpr (rank == 1) TMAOPS_LOAD("1d", "{%5}", "r"(at[0]));
  if constexpr (rank == 2) TMAOPS_LOAD("2d", "{%5, %6}", "r"(at[0]), "r"(at[1]));
  if constexpr (rank == 3) TMAOPS_LOAD("3d", "{%5, %6, %7}", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  if constexpr (rank == 4) TMAOPS_LOAD("4d", "{%5, %6, %7, %8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  if constexpr (rank == 5)
    TMAOPS_LOAD("5d", "{%5, %6, %7, %8, %9}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#undef TMAOPS_LOAD
}

/// shared -> global (PTX ISA "cp.async.bulk.tensor", bulk_group form). After fence_async_shared(); then
/// commit_stores(). The box may overhang the tensor's end, but no coordinate may be negative.
template <int rank>
__device__ __forceinline__ void tensor_store(const void* map, const std::int32_t (&at)[rank], const void* from) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, map, at, from);
}

/// shared added to global, element by element in the map's type (PTX ISA "cp.reduce.async.bulk.tensor", .add). Sums
/// arrive in any order.
template <int rank>
__device__ __forceinline__ void tensor_add(const void* map, const std::int32_t (&at)[rank], const void* from) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_reduce_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, cuda::ptx::op_add, map, at,
                                         from);
}

/// A box into the L2 (PTX ISA "cp.async.bulk.prefetch.tensor").
template <int rank>
__device__ __forceinline__ void tensor_prefetch(const void* map, const std::int32_t (&at)[rank]) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  const auto descriptor = reinterpret_cast<std::uint64_t>(map);
#define TMAOPS_PREFETCH(dimensions, coordinates, ...)                                                                  \
  asm volatile("cp.async.bulk.prefetch.tensor." dimensions ".L2.global.tile [%0, " coordinates "];" ::"l"(descriptor), \
               __VA_ARGS__                                                                                             \
               : "memory")
  if constexpr (rank == 1) TMAOPS_PREFETCH("1d", "{%1}", "r"(at[0]));
  if constexpr (rank == 2) TMAOPS_PREFETCH("2d", "{%1, %2}", "r"(at[0]), "r"(at[1]));
  if constexpr (rank == 3) TMAOPS_PREFETCH("3d", "{%1, %2, %3}", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  if constexpr (rank == 4) TMAOPS_PREFETCH("4d", "{%1, %2, %3, %4}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  if constexpr (rank == 5)
    TMAOPS_PREFETCH("5d", "{%1, %2, %3, %4, %5}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#undef TMAOPS_PREFETCH
}

/// Starts fetching the map itself (128 B), so that the first load does not wait for it (PTX ISA "prefetch",
/// prefetch.tensormap).
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<std::uint64_t>(map)) : "memory");
}

}  // namespace tmaops::device
