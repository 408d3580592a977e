// What kernels elsewhere use of libcu++ and of cooperative groups: cuda::atomic, tiles, clusters, pipelines of a
// thread. `groups fault` raises a flag without releasing what stands before it.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <cstdio>
#include <cstring>
#include <cuda/atomic>
#include <cuda/pipeline>

#include "device/launch.cuh"
#include "device/shared_memory.cuh"

using namespace tmaops;
namespace cg = cooperative_groups;

constexpr int kThreads = 64;
constexpr auto kBlock = cuda::thread_scope_block;

__global__ void atomics(int* to, bool fault) {
  struct Shared {
    int count, word;
    unsigned flag;
    float most;
    cuda::atomic<int, kBlock> sum;
  };
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) {
    shared.count = 0;
    shared.most = 0;
    shared.sum.store(0, cuda::memory_order_relaxed);
    cuda::atomic_ref<unsigned, kBlock>(shared.flag).store(0);
  }
  __syncthreads();
  cuda::atomic_ref<int, kBlock>(shared.count).fetch_add(1, cuda::memory_order_relaxed);
  cuda::atomic_ref<float, kBlock>(shared.most).fetch_max(static_cast<float>(threadIdx.x));
  shared.sum += 2;
  cuda::atomic_ref<unsigned, kBlock> flag(shared.flag);
  if (threadIdx.x == 63) {
    shared.word = 7;
    flag.store(1, fault ? cuda::memory_order_relaxed : cuda::memory_order_release);
  }
  if (threadIdx.x < 32)
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
  if (threadIdx.x < 32) to[threadIdx.x] = shared.word;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device>(to[32]).fetch_max(shared.count + shared.sum.load() +
                                                                     static_cast<int>(shared.most));
}

/// A block of two dimensions of a cluster of two.
__global__ void groups(int* to) {
  auto& words = device::block_shared<int[kThreads]>();
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto tile = cg::tiled_partition<8>(warp);
  const auto cluster = cg::this_cluster();
  words[block.thread_rank()] = static_cast<int>(block.thread_rank());
  warp.sync();
  int sum = words[block.thread_rank() ^ 1];
  for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_xor(sum, offset);
  const unsigned first = tile.ballot(tile.thread_rank() == 0);
  cg::sync(block);
  cluster.sync();
  const int place = static_cast<int>(cluster.block_rank() * block.num_threads() + block.thread_rank());
  to[place] = first != 1 || tile.meta_group_rank() != block.thread_rank() % 32 / 8 ? -1 : sum;
}

/// Doubles tiles that cp.async brings, the next one while one is worked on.
__global__ void pipelines(const int* from, int* to) {
  auto& tiles = device::block_shared<int[2][kThreads], 16>();
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline();
  const auto fetch = [&](int tile) {
    pipeline.producer_acquire();
    cuda::memcpy_async(block, tiles[tile % 2], from + kThreads * tile, cuda::aligned_size_t<16>(sizeof(tiles[0])),
                       pipeline);
    pipeline.producer_commit();
  };
  fetch(0);
  for (int tile = 0; tile < 3; ++tile) {
    if (tile < 2) fetch(tile + 1);
    pipeline.consumer_wait();
    block.sync();
    to[kThreads * tile + threadIdx.x] = 2 * tiles[tile % 2][kThreads - 1 - threadIdx.x];
    block.sync();
    pipeline.consumer_release();
  }
  __pipeline_memcpy_async(&tiles[0][threadIdx.x], from + threadIdx.x, sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  to[3 * kThreads + threadIdx.x] = tiles[0][threadIdx.x];
}

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  constexpr int kNumbers = 4 * kThreads;
  int numbers[kNumbers];
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
  int *from = nullptr, *to = nullptr;
  cudaMalloc(&from, sizeof(numbers));
  cudaMalloc(&to, sizeof(numbers));
  cudaMemcpy(from, numbers, sizeof(numbers), cudaMemcpyHostToDevice);
  cudaMemset(to, 0, sizeof(numbers));
  const auto results = [&](cudaError_t status) {
    if (status != cudaSuccess) return false;
    cudaMemcpy(numbers, to, sizeof(numbers), cudaMemcpyDeviceToHost);
    return true;
  };
  if (!results(device::launch(atomics, {.block = kThreads}, to, fault))) return 1;
  if (numbers[5] != 7 || numbers[32] != 64 + 128 + 63) return 1;
  if (!results(device::launch(groups, {.grid = 2, .block = {8, 8}, .cluster = 2}, to))) return 1;
  for (int i = 0; i < 2 * kThreads; ++i)
    if (numbers[i] != 8 * (i % kThreads / 8 * 8) + 28) return 1;
  if (!results(device::launch(pipelines, {.block = kThreads}, from, to))) return 1;
  for (int i = 0; i < 3 * kThreads; ++i)
    if (numbers[i] != 2 * (i / kThreads * kThreads + kThreads - 1 - i % kThreads)) return 1;
  for (int i = 0; i < kThreads; ++i)
    if (numbers[3 * kThreads + i] != i) return 1;
  std::puts("right");
  return 0;
}
