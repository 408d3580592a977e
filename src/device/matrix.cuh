// 8x8 matrices of 16-bit elements between shared memory and a warp's registers (PTX ISA "ldmatrix", "stmatrix"). Thread
// t gives the address of row t % 8 of matrix t / 8 (16 bytes, aligned to 16) and holds elements (t / 4, 2 (t % 4) + {0,
// 1}).
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"

namespace tmaops::device {

/// Reads four matrices.
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_row)
               : "memory");
}
/// The same, each transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_row)
               : "memory");
}
/// Writes four matrices.
__device__ __forceinline__ void store_matrices(void* row, const std::uint32_t (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

/// The same, each transposed.
__device__ __forceinline__ void store_matrices_transposed(void* row, const std::uint32_t (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

}  // namespace tmaops::device
