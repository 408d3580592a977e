// Stores a tile into the left part of a wider matrix, whose right part belongs to somebody else. `store fault` has its
// fault on.
//   nvcc -std=c++20 -arch=sm_90a store.cu -o store $(pkg-config --cflags --libs tmaops-device)
//
// The left part has 60 columns of 16 bits: 120 bytes. A TMA store clips a row in steps of 16 bytes, so a map of 60
// columns lets it write 128: four elements of the neighbour (docs/findings/gemm.md, G10; `tmaops tensormap` notes
// store_inner_16). The right way is a map of the 56 columns that are a multiple of 16 bytes, and threads that write the
// last four. The fault is a map of 60.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/launch.cuh"
#include "device/tensor_copy.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;

constexpr int kWidth = 60, kRows = 32;   // of the left part
constexpr int kPitch = 80;               // columns of the whole matrix
constexpr int kByCopy = kWidth / 8 * 8;  // columns that a store may write
constexpr int kTileWidth = 64;           // of the tile in shared memory: the box is a multiple of 16 bytes
constexpr std::uint16_t kNeighbour = 0xBEEF;

__device__ __host__ constexpr std::uint16_t value_at(int row, int column) {
  return static_cast<std::uint16_t>(row * kWidth + column + 1);
}

__global__ void store_kernel(const __grid_constant__ tma::TensorMap map, std::uint16_t* matrix, bool fault) {
  auto& tile = device::block_shared<std::uint16_t[kRows][kTileWidth], 128>();
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kTileWidth; i += static_cast<int>(blockDim.x))
    tile[i / kTileWidth][i % kTileWidth] = value_at(i / kTileWidth, i % kTileWidth);
  device::fence_async_shared();  // what the threads wrote is there for the copy engine
  __syncthreads();
  if (threadIdx.x == 0) {
    device::tensor_store(&map, {0, 0}, tile);
    device::commit_stores();
    device::wait_stores_read();  // the tile may not go before the engine has read it
  }
  if (fault) return;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * (kWidth - kByCopy); i += static_cast<int>(blockDim.x)) {
    const int row = i / (kWidth - kByCopy), column = kByCopy + i % (kWidth - kByCopy);
    matrix[row * kPitch + column] = tile[row][column];
  }
}

#define CHECK(call)                                                    \
  if (const cudaError_t status = (call); status != cudaSuccess) {      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status)); \
    return 1;                                                          \
  }

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  std::vector<std::uint16_t> matrix(kPitch * kRows, kNeighbour);
  std::uint16_t* memory = nullptr;
  CHECK(cudaMalloc(&memory, matrix.size() * 2));
  CHECK(cudaMemcpy(memory, matrix.data(), matrix.size() * 2, cudaMemcpyHostToDevice));

  tma::TensorMapSpec spec =
      tma::tiled_spec(tma::ElementType::u16, {fault ? kWidth : kByCopy, kRows}, {kTileWidth, kRows});
  spec.strides = {kPitch * 2};
  spec.address = reinterpret_cast<std::uint64_t>(memory);
  const int failed = [&] {
    CHECK(device::launch(store_kernel, {.block = 64}, tma::encode(spec), memory, fault));
    CHECK(cudaDeviceSynchronize());
    return 0;
  }();
  CHECK(cudaMemcpy(matrix.data(), memory, matrix.size() * 2, cudaMemcpyDeviceToHost));

  // The same on the CPU: the left part has the tile, the right part is as it was.
  for (int i = 0; i < kPitch * kRows; ++i) {
    const int row = i / kPitch, column = i % kPitch;
    const std::uint16_t want = column < kWidth ? value_at(row, column) : kNeighbour;
    if (matrix[i] != want) {
      std::fprintf(stderr, "row %d, column %d%s: got %d, should be %d\n", row, column,
                   column < kWidth ? "" : ", the neighbour's", matrix[i], want);
      return 1;
    }
  }
  if (failed == 0) std::printf("store: %d rows are right, and the neighbour's columns are whole\n", kRows);
  return failed;
}
