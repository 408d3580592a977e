// Boxes of a tensor described by a tensor map, copied by the copy engine (PTX ISA "cp.async.bulk.tensor").
//
// Coordinates are signed element indices, innermost dimension first. The first one is a multiple of 16 bytes; any other
// gives "illegal instruction". A load fills what lies outside the tensor, and a store leaves it out. The shared address
// is a multiple of 128 B. A box starts in phase with a 128B, 64B or 32B swizzle at a multiple of 1024, 512 or 256 B.
// The barrier expects the bytes of the whole box, the filled part included. The map is a `const __grid_constant__
// CUtensorMap` parameter. One thread issues a copy.
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

/// The same into the same place of every block of `blocks` (bit r is cluster rank r). The bytes of a block complete on
/// its own barrier, which lies at the same place. Compute capability 9.0a and 10.0a only.
template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, map, at, &barrier.state,
                                  blocks);
}

// Instructions without a wrapper in CCCL, written once for all ranks. ISSUE(dimensions, coordinates) is the
// instruction. Operands 0 to 4 are the coordinates, of which it names the first `rank`; its own operands start at 5.
#define TMAOPS_EACH_RANK(ISSUE)                             \
  if constexpr (rank == 1) ISSUE("1d", "{%0}");             \
  if constexpr (rank == 2) ISSUE("2d", "{%0, %1}");         \
  if constexpr (rank == 3) ISSUE("3d", "{%0, %1, %2}");     \
  if constexpr (rank == 4) ISSUE("4d", "{%0, %1, %2, %3}"); \
  if constexpr (rank == 5) ISSUE("5d", "{%0, %1, %2, %3, %4}")
#define TMAOPS_COORDINATES \
  "r"(at[0]), "r"(at[rank > 1 ? 1 : 0]), "r"(at[rank > 2 ? 2 : 0]), "r"(at[rank > 3 ? 3 : 0]), "r"(at[rank > 4 ? 4 : 0])

/// The same with a cache hint.
template <int rank>
__device__ __forceinline__ void tensor_load(void* to, const void* map, const std::int32_t (&at)[rank], Barrier& barrier,
                                            CacheHint hint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
#define TMAOPS_LOAD(dimensions, coordinates)                                                                      \
  asm volatile("cp.async.bulk.tensor." dimensions                                                                 \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%5], [%6, " coordinates \
               "], [%7], %8;" ::TMAOPS_COORDINATES,                                                               \
               "r"(shared_address(to)), "l"(map), "r"(shared_address(&barrier)), "l"(hint)                        \
               : "memory")
  TMAOPS_EACH_RANK(TMAOPS_LOAD);
#undef TMAOPS_LOAD
}

/// Multicast with a cache hint.
template <int rank>
__device__ __forceinline__ void tensor_load_multicast(void* to, const void* map, const std::int32_t (&at)[rank],
                                                      Barrier& barrier, std::uint16_t blocks, CacheHint hint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
#define TMAOPS_LOAD(dimensions, coordinates)                                                                        \
  asm volatile("cp.async.bulk.tensor." dimensions                                                                   \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%5], " \
               "[%6, " coordinates "], [%7], %9, %8;" ::TMAOPS_COORDINATES,                                         \
               "r"(shared_address(to)), "l"(map), "r"(shared_address(&barrier)), "l"(hint), "h"(blocks)             \
               : "memory")
  TMAOPS_EACH_RANK(TMAOPS_LOAD);
#undef TMAOPS_LOAD
}

/// shared -> global (PTX ISA "cp.async.bulk.tensor", bulk_group form). Call fence_async_shared() before it and
/// commit_stores() after it. The box may reach past the tensor's end, but no coordinate may be negative. At the end of
/// a row it clips in steps of 16 bytes: where dims[0] is no multiple of that, up to 15 bytes beyond are written.
template <int rank>
__device__ __forceinline__ void tensor_store(const void* map, const std::int32_t (&at)[rank], const void* from) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, map, at, from);
}

/// Fetches a box into the L2 (PTX ISA "cp.async.bulk.prefetch.tensor").
template <int rank>
__device__ __forceinline__ void tensor_prefetch(const void* map, const std::int32_t (&at)[rank], CacheHint hint) {
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
#define TMAOPS_PREFETCH(dimensions, coordinates)                                                              \
  asm volatile("cp.async.bulk.prefetch.tensor." dimensions ".L2.global.tile.L2::cache_hint [%5, " coordinates \
               "], %6;" ::TMAOPS_COORDINATES,                                                                 \
               "l"(map), "l"(hint)                                                                            \
               : "memory")
  TMAOPS_EACH_RANK(TMAOPS_PREFETCH);
#undef TMAOPS_PREFETCH
}
#undef TMAOPS_EACH_RANK
#undef TMAOPS_COORDINATES

/// Starts fetching the map itself (128 B), so that the first load does not wait for it (PTX ISA "prefetch",
/// prefetch.tensormap).
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<std::uint64_t>(map)) : "memory");
}

}  // namespace tmaops::device
