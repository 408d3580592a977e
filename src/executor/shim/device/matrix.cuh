// Host twin of src/device/matrix.cuh.
#pragma once

#include <cstdint>

#include "device/shared_memory.cuh"

namespace tmaops::device {

__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  executor::load_matrices(to, executor::shared_pointer(shared_row), false);
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  executor::load_matrices(to, executor::shared_pointer(shared_row), true);
}
__device__ __forceinline__ void store_matrices(void* row, const std::uint32_t (&from)[4]) {
  executor::store_matrices(row, from, false);
}
__device__ __forceinline__ void store_matrices_transposed(void* row, const std::uint32_t (&from)[4]) {
  executor::store_matrices(row, from, true);
}

}  // namespace tmaops::device
