// Doubles numbers in shared memory between a bulk load and a bulk store. `doubled fault` leaves out a fence.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/launch.cuh"

using namespace tmaops;

constexpr int kNumbers = 256;

__global__ void doubled_kernel(int* numbers, bool fault) {
  struct Shared {
    alignas(16) int numbers[kNumbers];
    device::Barrier arrived;
  };
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) {
    device::init_barrier(shared.arrived, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(shared.arrived, sizeof(shared.numbers));
    device::bulk_load(shared.numbers, numbers, sizeof(shared.numbers), shared.arrived);
  }
  __syncthreads();
  device::wait(shared.arrived, 0);
  shared.numbers[threadIdx.x] *= 2;
  if (!fault) device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    device::bulk_store(numbers, shared.numbers, sizeof(shared.numbers));
    device::commit_stores();
    device::wait_stores_read();
  }
}

int main(int count, char**) {
  std::vector<int> numbers(kNumbers);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
  int* memory = nullptr;
  cudaMalloc(&memory, sizeof(int) * kNumbers);
  cudaMemcpy(memory, numbers.data(), sizeof(int) * kNumbers, cudaMemcpyHostToDevice);
  if (device::launch(doubled_kernel, {.block = kNumbers}, memory, count > 1) != cudaSuccess) return 1;
  cudaMemcpy(numbers.data(), memory, sizeof(int) * kNumbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < kNumbers; ++i)
    if (numbers[i] != 2 * i) return 1;
  std::puts("right");
  return 0;
}
