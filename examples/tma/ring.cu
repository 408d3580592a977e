// A ring of stages between one thread that loads and the warps that read, with the phases of its barriers spelled out
// (docs/barriers.md). `ring fault` has its fault switched on.
//   nvcc -std=c++20 -arch=sm_90a ring.cu -o ring $(pkg-config --cflags --libs tmaops-device)
//
// Each column of a matrix is summed. 20 boxes pass through three stages. `full` of a stage tells that its box has come,
// `empty` that all consumers have read it. Both are used once in each round through the ring, so their phases are the
// rounds, and their parity is that of the round. With the fault the consumers wait for parity 0 in every round.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/launch.cuh"
#include "device/tensor_copy.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;

constexpr int kColumns = 64, kBoxRows = 16, kBoxes = 20;
constexpr int kStages = 3;
constexpr int kConsumers = kColumns;  // threads, each with a column of its own
constexpr std::uint32_t kBoxBytes = kColumns * kBoxRows * sizeof(float);

struct Shared {
  alignas(128) float box[kStages][kBoxRows][kColumns];
  device::Barrier full[kStages], empty[kStages];
};

/// Warp 0 produces, the others consume.
__global__ void sum_kernel(const __grid_constant__ tma::TensorMap map, float* sums, bool fault) {
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      device::init_barrier(shared.full[stage], 1);            // the producer's arrival, and bytes
      device::init_barrier(shared.empty[stage], kConsumers);  // every consumer's arrival
    }
    device::fence_barrier_init();
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    for (int i = 0; i < kBoxes; ++i) {
      const int stage = i % kStages;
      const auto parity = static_cast<std::uint32_t>(i / kStages) & 1u;
      // Round 0 finds the stages empty: of a fresh barrier a wait for parity 1 returns at once. Round n waits for phase
      // n - 1.
      device::wait(shared.empty[stage], parity ^ 1u, {"an empty stage", stage});
      device::arrive_expect_bytes(shared.full[stage], kBoxBytes);
      device::tensor_load(shared.box[stage], &map, {0, i * kBoxRows}, shared.full[stage]);
    }
  } else if (threadIdx.x >= 32) {
    const int column = static_cast<int>(threadIdx.x) - 32;
    float sum = 0;
    for (int i = 0; i < kBoxes; ++i) {
      const int stage = i % kStages;
      const auto parity = static_cast<std::uint32_t>(i / kStages) & 1u;
      device::wait(shared.full[stage], fault ? 0 : parity, {"a full stage", stage});
      for (int row = 0; row < kBoxRows; ++row) sum += shared.box[stage][row][column];
      device::arrive(shared.empty[stage]);  // this thread has read
    }
    sums[column] = sum;
  }
}

#define CHECK(call)                                                    \
  if (const cudaError_t status = (call); status != cudaSuccess) {      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status)); \
    return 1;                                                          \
  }

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  std::vector<float> matrix(kColumns * kBoxRows * kBoxes), got(kColumns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 97);
  float *from = nullptr, *sums = nullptr;
  CHECK(cudaMalloc(&from, matrix.size() * sizeof(float)));
  CHECK(cudaMalloc(&sums, got.size() * sizeof(float)));
  CHECK(cudaMemcpy(from, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));

  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f32, {kColumns, kBoxRows * kBoxes}, {kColumns, kBoxRows});
  spec.address = reinterpret_cast<std::uint64_t>(from);
  CHECK(device::launch(sum_kernel, {.block = 32 + kConsumers}, tma::encode(spec), sums, fault));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got.data(), sums, got.size() * sizeof(float), cudaMemcpyDeviceToHost));

  // The same on the CPU; sums of small whole numbers are exact.
  for (int column = 0; column < kColumns; ++column) {
    float want = 0;
    for (int row = 0; row < kBoxRows * kBoxes; ++row) want += matrix[row * kColumns + column];
    if (got[column] != want) {
      std::fprintf(stderr, "column %d: got %g, should be %g\n", column, got[column], want);
      return 1;
    }
  }
  std::printf("ring: %d sums are right\n", kColumns);
  return 0;
}
