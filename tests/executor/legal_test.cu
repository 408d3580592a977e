// Kernels that are right in a style that those of this project do not have: no rule may find anything in them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/cuda_launch.hpp"
#include "device/bulk_copy.cuh"
#include "device/cluster.cuh"
#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "device/pipeline.cuh"
#include "device/tensor_copy.cuh"
#include "device/warp.cuh"
#include "executor/findings.hpp"
#include "tma/driver.hpp"
#include "tmaops/error.hpp"

namespace tmaops::executor {
namespace {

using device::Barrier;

/// Device memory of the words 0, 1, 2 and so on.
class Numbers {
 public:
  Numbers() {
    std::vector<int> values(kCount);
    for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = i;
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, kCount * sizeof(int)), "test");
    at_ = static_cast<int*>(memory);
    check_cuda(cudaMemcpy(at_, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice), "test");
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() { cudaFree(at_); }
  int* get() const { return at_; }
  int operator[](int i) const { return at_[i]; }

 private:
  static constexpr int kCount = 4096;
  int* at_ = nullptr;
};

/// 32 rows of 32 words each, in boxes.
tma::TensorMap map_of(const Numbers& numbers, std::vector<std::int64_t> dims, std::vector<std::int64_t> box) {
  const std::int64_t row = dims[0] * 4;
  return tma::encode_valid({.dtype = tma::ElementType::i32,
                            .address = reinterpret_cast<std::uintptr_t>(numbers.get()),
                            .dims = std::move(dims),
                            .strides = {row},
                            .box = std::move(box)},
                           0);
}

/// Runs a kernel under every schedule and some seeds.
template <auto kernel, class... Given>
void expect_nothing(const LaunchShape& shape, Given... given) {
  std::string found;
  for (const Schedule schedule : kSchedules)
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      set_options({.seed = seed, .schedule = schedule, .global_races = true});
      try {
        launch_kernel<kernel>("test", shape, nullptr, given...);
      } catch (const Error&) {
      }
      for (const Finding& finding : take_findings()) found += to_text(finding) + "\n";
    }
  set_options({});
  EXPECT_EQ(found, "");
}

/// Three groups of consumers, two rings of which one goes round half as often, and a warp of producers that has nothing
/// more to do.
__global__ void three_consumers(const int* from, int* sums) {
  struct Shared {
    alignas(128) int a[4][64];
    alignas(128) int b[3][64];
    device::Ring<4> ring_a;
    device::Ring<3> ring_b;
  };
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) {
    shared.ring_a.init(1, 3);
    shared.ring_b.init(1, 3);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (!device::elect_one()) return;
    device::Producer<4> producer_a(shared.ring_a);
    device::Producer<3> producer_b(shared.ring_b);
    for (int tile = 0; tile < 7; ++tile) {
      const int a = producer_a.acquire();
      producer_a.expect(a, 256);
      device::bulk_load(shared.a[a], from + 64 * tile, 256, producer_a.full(a));
      if (tile % 2 != 0) continue;
      const int b = producer_b.acquire();
      producer_b.expect(b, 256);
      device::bulk_load(shared.b[b], from + 64 * tile, 256, producer_b.full(b));
    }
    return;
  }
  if (threadIdx.x < 128) return;
  device::Consumer<4> consumer_a(shared.ring_a);
  device::Consumer<3> consumer_b(shared.ring_b);
  int sum = 0;
  for (int tile = 0; tile < 7; ++tile) {
    const int a = consumer_a.acquire();
    sum += shared.a[a][threadIdx.x % 64];
    const int b = tile % 2 == 0 ? consumer_b.acquire() : -1;
    if (b >= 0) sum += shared.b[b][threadIdx.x % 64];
    if (threadIdx.x / 128 == 1) device::sync_threads<1>(128);
    if (threadIdx.x / 128 == 2) device::sync_threads<2>(128);
    if (threadIdx.x / 128 == 3) device::sync_threads<3>(128);
    if (threadIdx.x % 128 != 0) continue;
    consumer_a.release(a);
    if (b >= 0) consumer_b.release(b);
  }
  sums[threadIdx.x] = sum;
}
TEST(executor_legal, three_groups_of_consumers_and_two_rings) {
  const Numbers from, sums;
  expect_nothing<three_consumers>({.block = 512}, from.get(), sums.get());
  EXPECT_EQ(sums[130], 7 * 2 + 64 * 21 + 4 * 2 + 64 * 12);
}

/// A cluster of two by two: each block loads half of its row's words and half of its column's, for both who need them.
__global__ void rows_and_columns(const __grid_constant__ tma::TensorMap map, int* sums) {
  struct Shared {
    alignas(1024) int row[2][64];
    alignas(1024) int column[2][64];
    Barrier full[2], empty[2];
  };
  auto& shared = device::block_shared<Shared>();
  const unsigned rank = device::cluster_rank();
  const unsigned row = rank / 2;
  const unsigned column = rank % 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      device::init_barrier(shared.full[i], 1);
      device::init_barrier(shared.empty[i], 4);
    }
    device::fence_barrier_init();
  }
  device::cluster_sync();
  int sum = 0;
  for (int tile = 0; tile < 5; ++tile) {
    const int stage = tile % 2;
    const unsigned parity = tile / 2 & 1;
    if (threadIdx.x == 0) {
      device::wait(shared.empty[stage], parity ^ 1);
      device::arrive_expect_bytes(shared.full[stage], 512);
      device::tensor_load_multicast(&shared.row[stage][32 * column], &map, {0, static_cast<int>(4 * tile + row)},
                                    shared.full[stage], static_cast<std::uint16_t>(3u << (2 * row)));
      device::tensor_load_multicast(&shared.column[stage][32 * row], &map, {0, static_cast<int>(4 * tile + 2 + column)},
                                    shared.full[stage], static_cast<std::uint16_t>(5u << column));
    }
    device::wait(shared.full[stage], parity);
    sum += shared.row[stage][threadIdx.x] + shared.column[stage][threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 4) device::arrive_at(shared.empty[stage], threadIdx.x);
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  device::cluster_sync();
}
TEST(executor_legal, multicast_to_rows_and_columns_of_a_cluster) {
  const Numbers from, sums;
  expect_nothing<rows_and_columns>({.grid = 8, .block = 64, .cluster = 4}, map_of(from, {32, 32}, {32, 1}), sums.get());
}

/// Two buffers whose newest store is left under way.
__global__ void buffers_in_turn(int* to) {
  auto& buffers = device::block_shared<int[2][64], 128>();
  for (int tile = 0; tile < 6; ++tile) {
    if (threadIdx.x == 0) device::wait_stores_read<1>();
    __syncthreads();
    buffers[tile % 2][threadIdx.x] = tile;
    device::fence_async_shared();
    __syncthreads();
    if (threadIdx.x != 0) continue;
    device::bulk_store(to + 64 * tile, buffers[tile % 2], 256);
    device::commit_stores();
  }
  if (threadIdx.x == 0) device::wait_stores_read();
}
TEST(executor_legal, buffers_whose_newest_store_is_under_way) {
  const Numbers to;
  expect_nothing<buffers_in_turn>({.block = 64}, to.get());
}

/// The copy engine leaves out what lies beyond the tensor, so nobody writes it.
__global__ void part_of_a_box(const __grid_constant__ tma::TensorMap map) {
  auto& box = device::block_shared<int[16][16], 128>();
  const int column = threadIdx.x % 16;
  const int row = threadIdx.x / 16;
  if (column < 12 && row < 10) box[row][column] = 5;
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::fence_async_shared();  // by the thread that stores, behind the barrier
  device::tensor_store(&map, {0, 0}, box);
  device::commit_stores();
  device::wait_stores_read();
}
TEST(executor_legal, a_box_that_is_written_inside_of_the_tensor_alone) {
  const Numbers to;
  expect_nothing<part_of_a_box>({.block = 256}, map_of(to, {12, 10}, {16, 16}));
  EXPECT_EQ(to[119], 5);
  EXPECT_EQ(to[120], 120);
}

/// Copies by threads that nobody needs: the block keeps its memory until they have come.
__global__ void copies_left_behind(const int* from) {
  auto& words = device::block_shared<int[4 * 64], 16>();
  device::copy_async_16(words + 4 * threadIdx.x, from + 4 * threadIdx.x);
  if (threadIdx.x < 32) device::commit_copies();
}
TEST(executor_legal, copies_by_threads_that_nobody_waits_for) {
  const Numbers from;
  expect_nothing<copies_left_behind>({.block = 64}, from.get());
}

/// Threads that have ended count as come: to __syncthreads, to the cluster's barrier, to what lanes do together.
__global__ void early_ends(int* to) {
  auto& words = device::block_shared<int[128]>();
  if (threadIdx.x >= 100 || (threadIdx.x >= 32 && threadIdx.x < 64)) return;
  to += blockIdx.x * blockDim.x;
  words[threadIdx.x] = threadIdx.x;
  __syncwarp();
  to[threadIdx.x] = __shfl_sync(0xffffffffu, words[threadIdx.x ^ 1], 2);
  __syncthreads();
  if (threadIdx.x == 7) return;
  device::cluster_sync();
  to[threadIdx.x] += words[99 - threadIdx.x % 16];
}
TEST(executor_legal, threads_that_end_before_the_others_meet) {
  const Numbers to;
  expect_nothing<early_ends>({.block = 128}, to.get());
  expect_nothing<early_ends>({.grid = 2, .block = 128, .cluster = 2}, to.get());
}

/// One lane tests the barrier; bytes are expected in two parts, each behind its copy.
__global__ void tested_barrier(const int* from, int* to) {
  struct Shared {
    alignas(16) int words[64];
    Barrier barrier;
  };
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) {
    device::init_barrier(shared.barrier, 2);
    device::fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    const unsigned at = threadIdx.x;
    device::bulk_load(shared.words + at, from + at, 128, shared.barrier);
    device::arrive_expect_bytes(shared.barrier, 128);
    while (!device::test_wait(shared.barrier, 0)) __nanosleep(20);
  }
  __syncwarp();
  to[threadIdx.x] = shared.words[63 - threadIdx.x];
}
TEST(executor_legal, a_barrier_that_one_lane_tests) {
  const Numbers from, to;
  expect_nothing<tested_barrier>({.block = 64}, from.get(), to.get());
  EXPECT_EQ(to[1], 62);
}

/// A flag in shared memory, raised by one warp and looked at by another.
__global__ void raised_flag(int* to) {
  struct Shared {
    int word;
    unsigned flag;
  };
  auto& shared = device::block_shared<Shared>();
  if (threadIdx.x == 0) shared.flag = 0;
  __syncthreads();
  if (threadIdx.x == 63) {
    shared.word = 7;
    __threadfence_block();
    atomicExch(&shared.flag, 1u);
  }
  if (threadIdx.x >= 32) return;
  while (atomicAdd(&shared.flag, 0u) == 0) {
  }
  __threadfence_block();
  to[threadIdx.x] = shared.word;
}
TEST(executor_legal, a_flag_that_another_warp_raises) {
  const Numbers to;
  expect_nothing<raised_flag>({.block = 64}, to.get());
  EXPECT_EQ(to[31], 7);
}

__constant__ float kFactors[2] = {1, 1};

/// What CUDA C++ knows without a header, in the words of kernels that other people write.
__global__ void known_without_a_header(int* to, float* sums, __half2* pair) {
  const int lane = threadIdx.x % warpSize;
  unsigned words[8] = {__match_any_sync(0xFFFFu, lane % 4)};
  int same = -1;
  words[1] = __match_all_sync(0xFFFFu, lane / 16, &same) + static_cast<unsigned>(same);
  words[2] = __reduce_and_sync(0xFFFFu, 0xF0u | static_cast<unsigned>(lane));
  words[3] = __reduce_or_sync(0xFFFFu, 1u << lane);
  words[4] = __reduce_xor_sync(0xFFFFu, static_cast<unsigned>(lane) + 1);
  words[5] = static_cast<unsigned>(__dp4a(0x01FF0203, 0x04050607, 100));
  words[6] = __dp4a(0x01FF0203u, 0x04050607u, 100u);
  words[7] = __float2uint_rn(3e9f);
  if (const unsigned active = __activemask(); lane == __ffs(active) - 1)
    atomicAdd(sums, static_cast<float>(__popc(active)));
  atomicAdd(pair, __halves2half2(__hfma(__float2half(2), __float2half(3), __float2half(lane == 0 ? 1 : -6)),
                                 hexp(__half(0))));
  if (lane < 8) to[lane] = static_cast<int>(words[lane]);
  if (lane == 8) sums[1] = __fsub_rn(kFactors[0], kFactors[1]) + __ldcv(sums + 2);
  assert(same == 1);
}
TEST(executor_legal, what_cuda_knows_without_a_header) {
  const float factors[] = {5, 2};
  ASSERT_EQ(cudaMemcpyToSymbol(kFactors, factors, sizeof(factors)), cudaSuccess);
  const Numbers to, floats, halves;
  std::memset(floats.get(), 0, 64);
  std::memset(halves.get(), 0, 64);
  set_options({});
  launch_kernel<known_without_a_header>("test", {.block = 16}, nullptr, to.get(),
                                        reinterpret_cast<float*>(floats.get()),
                                        reinterpret_cast<__half2*>(halves.get()));
  const std::vector<unsigned> want{
      0x1111, 0x10000, 0xF0, 0xFFFF, 16, 100 + 4 - 5 + 12 + 21, 100 + 4 + 1275 + 12 + 21, 3000000000u};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(static_cast<unsigned>(to[i]), want[static_cast<std::size_t>(i)]) << i;
  EXPECT_EQ(reinterpret_cast<float*>(floats.get())[0], 16);
  EXPECT_EQ(reinterpret_cast<float*>(floats.get())[1], 3);
  const auto& sum = *reinterpret_cast<__half2*>(halves.get());
  EXPECT_EQ(__half2float(sum.x), 7);
  EXPECT_EQ(__half2float(sum.y), 16);
  EXPECT_TRUE(take_findings().empty());
}

}  // namespace
}  // namespace tmaops::executor
