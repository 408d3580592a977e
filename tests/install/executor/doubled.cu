// Doubles numbers in shared memory between a bulk load and a bulk store, then again by a dependent launch. `doubled
// fault` leaves out a fence, `doubled early` the wait for the kernel before.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/launch.cuh"
#include "device/warp.cuh"

using namespace tmaops;

constexpr int kNumbers = 256;

__global__ void doubled_kernel(int* numbers, const int* factor, bool fault, bool early) {
  struct Shared {
    alignas(16) int numbers[kNumbers];
    device::Barrier arrived;
  };
  auto& shared = device::block_shared<Shared>();
  device::let_next_kernel_start();
  const int by = *factor;  // no kernel writes it
  if (threadIdx.x == 0) {
    device::init_barrier(shared.arrived, 1);
    device::fence_barrier_init();
    if (!early) device::wait_for_previous_kernel();
    device::arrive_expect_bytes(shared.arrived, sizeof(shared.numbers));
    device::bulk_load(shared.numbers, numbers, sizeof(shared.numbers), shared.arrived);
  }
  __syncthreads();
  device::wait(shared.arrived, 0);
  shared.numbers[threadIdx.x] *= by;
  if (!fault) device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    device::bulk_store(numbers, shared.numbers, sizeof(shared.numbers));
    device::commit_stores();
    device::wait_stores_read();
  }
}

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  const bool early = count > 1 && std::strcmp(words[1], "early") == 0;
  std::vector<int> numbers(kNumbers);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
  int* memory = nullptr;
  cudaMalloc(&memory, sizeof(int) * kNumbers);
  cudaMemcpy(memory, numbers.data(), sizeof(int) * kNumbers, cudaMemcpyHostToDevice);
  int* factor = nullptr;
  const int two = 2;
  cudaMalloc(&factor, sizeof(int));
  cudaMemcpy(factor, &two, sizeof(int), cudaMemcpyHostToDevice);
  for (const bool dependent : {false, true})
    if (device::launch(doubled_kernel, {.block = kNumbers, .dependent = dependent}, memory, factor, fault, early) !=
        cudaSuccess)
      return 1;
  cudaMemcpy(numbers.data(), memory, sizeof(int) * kNumbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < kNumbers; ++i)
    if (numbers[i] != 4 * i) return 1;
  std::puts("right");
  return 0;
}
