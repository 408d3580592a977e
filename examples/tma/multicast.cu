// Two blocks of a cluster load the same tile once: each loads a half, and both receive both. `multicast fault` has its
// fault on.
//   nvcc -std=c++20 -arch=sm_90a multicast.cu -o multicast $(pkg-config --cflags --libs tmaops-device)
//
// A multicast load writes to the same place in every block of its mask, and its bytes complete on the barrier at the
// same place there. So each block expects the bytes of both halves, and its barrier must be ready before the other
// block issues its load: that takes a barrier of the cluster, not of the block. With the fault there is only the
// block's.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/cluster.cuh"
#include "device/launch.cuh"
#include "device/tensor_copy.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;

constexpr int kColumns = 32, kRows = 64, kHalfRows = kRows / 2;
constexpr int kClusters = 3, kBlocks = 2 * kClusters;  // each cluster has a tile of its own
constexpr std::uint32_t kTileBytes = kColumns * kRows * sizeof(float);

struct Shared {
  alignas(128) float tile[kRows][kColumns];
  device::Barrier arrived;
};

/// Every block sums the tile of its cluster, weighted by 1 in the first block and by 2 in the second.
__global__ void multicast_kernel(const __grid_constant__ tma::TensorMap map, float* sums, bool fault) {
  auto& shared = device::block_shared<Shared>();
  const std::uint32_t rank = device::cluster_rank();
  if (threadIdx.x == 0) {
    device::init_barrier(shared.arrived, 1);
    device::fence_barrier_init();  // for the copy engine and for the other block
    device::arrive_expect_bytes(shared.arrived, kTileBytes);
  }
  if (fault)
    __syncthreads();
  else
    device::cluster_sync();  // both barriers are ready

  if (threadIdx.x == 0) {
    const int row = static_cast<int>(rank) * kHalfRows;
    const int first = static_cast<int>(blockIdx.x / 2) * kRows;  // of the cluster's tile
    device::tensor_load_multicast(shared.tile[row], &map, {0, first + row}, shared.arrived, 0b11);
  }
  device::wait(shared.arrived, 0, {"both halves"});

  float sum = 0;
  for (int row = 0; row < kRows; ++row) sum += shared.tile[row][threadIdx.x];
  sums[blockIdx.x * kColumns + threadIdx.x] = sum * static_cast<float>(rank + 1);
  // Neither block may end while the other's load still writes into it. Here both halves have come, so nothing is to do.
}

#define CHECK(call)                                                    \
  if (const cudaError_t status = (call); status != cudaSuccess) {      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status)); \
    return 1;                                                          \
  }

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  std::vector<float> matrix(kColumns * kRows * kClusters), got(kColumns * kBlocks);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 89);
  float *from = nullptr, *sums = nullptr;
  CHECK(cudaMalloc(&from, matrix.size() * sizeof(float)));
  CHECK(cudaMalloc(&sums, got.size() * sizeof(float)));
  CHECK(cudaMemcpy(from, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));

  tma::TensorMapSpec spec =
      tma::tiled_spec(tma::ElementType::f32, {kColumns, kRows * kClusters}, {kColumns, kHalfRows});
  spec.address = reinterpret_cast<std::uint64_t>(from);
  CHECK(device::launch(multicast_kernel, {.grid = kBlocks, .block = kColumns, .cluster = 2}, tma::encode(spec), sums,
                       fault));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got.data(), sums, got.size() * sizeof(float), cudaMemcpyDeviceToHost));

  // The same on the CPU; sums of small whole numbers are exact.
  for (int block = 0; block < kBlocks; ++block)
    for (int column = 0; column < kColumns; ++column) {
      float want = 0;
      for (int row = 0; row < kRows; ++row) want += matrix[(block / 2 * kRows + row) * kColumns + column];
      want *= static_cast<float>(block % 2 + 1);
      if (got[block * kColumns + column] != want) {
        std::fprintf(stderr, "block %d, column %d: got %g, should be %g\n", block, column,
                     got[block * kColumns + column], want);
        return 1;
      }
    }
  std::printf("multicast: %d sums are right\n", kBlocks * kColumns);
  return 0;
}
