// Loads a tile with the 128B swizzle and reads it by ldmatrix without a bank conflict. `swizzle fault` has its fault
// on.
//   nvcc -std=c++20 -arch=sm_90a swizzle.cu -o swizzle $(pkg-config --cflags --libs tmaops-device)
//
// A tile of 64 rows of 64 halves has rows of 128 bytes: all 32 banks. ldmatrix reads 16 bytes of eight rows at once.
// Without a swizzle they lie in the same four banks, one below the other. With 128B, chunk c of row r lies where chunk
// c ^ (r % 8) would be, so that eight rows use eight groups of banks; who reads has to know. With the fault the kernel
// does not. Every access is legal then, so no rule is broken: the numbers are wrong.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/launch.cuh"
#include "device/matrix.cuh"
#include "device/tensor_copy.cuh"
#include "device/tile.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;

constexpr int kRows = 64, kColumns = 64;
using Tile = device::Tile<__half, device::Swizzle::b128, kColumns, kRows>;  // checked when the kernel is compiled

struct Shared {
  Tile::Storage tile;  // at a multiple of 1024 bytes: it starts in phase with its swizzle
  device::Barrier arrived;
};

/// One warp. `to` gets the tile as ldmatrix hands it out: for each 16 x 16 block the four words of each thread.
__global__ void read_kernel(const __grid_constant__ tma::TensorMap map, std::uint32_t* to, bool fault) {
  auto& shared = device::block_shared<Shared>();
  const int lane = static_cast<int>(threadIdx.x);
  if (lane == 0) {
    device::init_barrier(shared.arrived, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(shared.arrived, Tile::bytes);
    device::tensor_load(&shared.tile, &map, {0, 0}, shared.arrived);
  }
  __syncwarp();
  device::wait(shared.arrived, 0, {"the tile"});

  const std::uint32_t tile = device::shared_address(&shared.tile);
  for (int block = 0; block < kRows / 16 * (kColumns / 16); ++block) {
    // Thread t gives the address of row t % 8 of matrix t / 8; the matrices are the quarters of a 16 x 16 block.
    const int row = block / 4 * 16 + lane % 16, column = block % 4 * 16 + lane / 16 * 8;
    const auto dense = static_cast<std::uint32_t>((row * kColumns + column) * sizeof(__half));
    std::uint32_t words[4];
    device::load_matrices(words, tile + (fault ? dense : device::swizzled<device::Swizzle::b128>(dense)));
    for (int i = 0; i < 4; ++i) to[(block * 4 + i) * 32 + lane] = words[i];
  }
}

#define CHECK(call)                                                    \
  if (const cudaError_t status = (call); status != cudaSuccess) {      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status)); \
    return 1;                                                          \
  }

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  std::vector<std::uint16_t> matrix(kRows * kColumns), got(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<std::uint16_t>(i);
  std::uint16_t* from = nullptr;
  std::uint32_t* to = nullptr;
  CHECK(cudaMalloc(&from, matrix.size() * 2));
  CHECK(cudaMalloc(&to, got.size() * 2));
  CHECK(cudaMemcpy(from, matrix.data(), matrix.size() * 2, cudaMemcpyHostToDevice));

  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f16, {kColumns, kRows}, {kColumns, kRows});
  spec.swizzle = tma::Swizzle::b128;
  spec.address = reinterpret_cast<std::uint64_t>(from);
  CHECK(device::launch(read_kernel, {.block = 32}, tma::encode(spec), to, fault));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got.data(), to, got.size() * 2, cudaMemcpyDeviceToHost));

  // The same on the CPU: thread t holds elements (t / 4, 2 (t % 4)) and the next of each matrix.
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int block = static_cast<int>(i) / 256, matrix_of_block = static_cast<int>(i) / 64 % 4,
              lane = static_cast<int>(i) / 2 % 32;
    const int row = block / 4 * 16 + matrix_of_block % 2 * 8 + lane / 4;
    const int column = block % 4 * 16 + matrix_of_block / 2 * 8 + lane % 4 * 2 + static_cast<int>(i) % 2;
    if (got[i] != matrix[row * kColumns + column]) {
      const int is = got[i];
      std::fprintf(stderr, "row %d, column %d: got the element of row %d, column %d\n", row, column, is / kColumns,
                   is % kColumns);
      return 1;
    }
  }
  std::printf("swizzle: %zu elements are right\n", got.size());
  return 0;
}
