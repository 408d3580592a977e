// Loads in im2col mode: the pixels that one tap of a convolution filter reads, as rows of channels (PTX ISA
// "cp.async.bulk.tensor", .im2col). No kernel of the library takes them: this is to test that such maps are right.
#pragma once

#include <cstdint>

#include "device/barrier.cuh"
#ifdef TMAOPS_EXECUTOR
#include "executor/im2col.hpp"
#endif

namespace tmaops::test {

/// global -> shared through an im2col map of rank 3 to 5. `at` is (channel, w[, h[, d]], n) of the first base pixel;
/// `offset` is (w[, h[, d]]) of the filter tap, added to every pixel.
template <int rank>
__device__ __forceinline__ void im2col_load(void* to, const void* map, const std::int32_t (&at)[rank],
                                            const std::uint16_t (&offset)[rank - 2], device::Barrier& barrier) {
  static_assert(rank >= 3 && rank <= 5, "an im2col map has 3 to 5 dimensions");
#ifdef TMAOPS_EXECUTOR
  executor::im2col_load(to, map, at, offset, rank, &barrier);
#else
  const std::uint32_t address = device::shared_address(to);
  const std::uint32_t signal = device::shared_address(&barrier);
  const auto descriptor = reinterpret_cast<std::uint64_t>(map);
#define TMAOPS_LOAD(dimensions, coordinates, offsets, ...)                                           \
  asm volatile("cp.async.bulk.tensor." dimensions                                                    \
               ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " coordinates \
               "], [%2], " offsets ";" ::"r"(address),                                               \
               "l"(descriptor), "r"(signal), __VA_ARGS__                                             \
               : "memory")
  if constexpr (rank == 3)
    TMAOPS_LOAD("3d", "{%3, %4, %5}", "{%6}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"(offset[0]));
  if constexpr (rank == 4)
    TMAOPS_LOAD("4d", "{%3, %4, %5, %6}", "{%7, %8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(offset[0]),
                "h"(offset[1]));
  if constexpr (rank == 5)
    TMAOPS_LOAD("5d", "{%3, %4, %5, %6, %7}", "{%8, %9, %10}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
                "r"(at[4]), "h"(offset[0]), "h"(offset[1]), "h"(offset[2]));
#undef TMAOPS_LOAD
#endif
}

}  // namespace tmaops::test
