// Barriers, the pipeline built on them, warp functions and dependent launch.
#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/pipeline.cuh"
#include "device/warp.cuh"
#include "gpu/support.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;
using test::run;
using namespace device;  // NOLINT(google-build-using-namespace)

// Long enough for another warp to run ahead if nothing holds it back.
__device__ void delay(std::int64_t how_long = 20000) {
  const std::int64_t start = cycles();
  while (cycles() - start < how_long) {
  }
}

// Seven phases of a barrier of 64 arrivals; thread 0 is late, so nobody may see the phase end before it.
__global__ void phases_kernel(int* out) {
  auto& barrier = block_shared<Barrier>();
  auto& counter = block_shared<volatile int>();
  const int t = threadIdx.x;
  if (t == 0) {
    init_barrier(barrier, 64);
    fence_barrier_init();
    counter = 0;
  }
  __syncthreads();
  int seen = 0;
  for (int phase = 0; phase < 7; ++phase) {
    if (t == 0) {
      delay();
      if (!test_wait(barrier, phase % 2)) seen |= 1 << 8;
      counter = phase + 1;
    }
    arrive(barrier);
    wait(barrier, phase % 2);
    if (counter == phase + 1) seen |= 1 << phase;
    if (!test_wait(barrier, phase % 2)) seen |= 1 << 9;
    __syncthreads();
  }
  out[t] = seen;
}

TEST(Barrier, phase_ends_with_the_last_arrival) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<int> out(64);
  run<phases_kernel>({.grid = 1, .block = 64}, out.get());
  const auto got = out.values();
  EXPECT_EQ(got[0], 0x17F) << "the phase had ended before the last thread arrived, or a wait returned early";
  for (std::size_t t = 1; t < 64; ++t) EXPECT_EQ(got[t], 0x7F) << t;
}

__global__ void expect_kernel(const std::uint32_t* from, int* out) {
  auto& tile = block_shared<std::uint32_t[64], 128>();
  auto& barrier = block_shared<Barrier>();
  init_barrier(barrier, 1);
  fence_barrier_init();
  arrive_expect_bytes(barrier, 256);  // of two copies
  out[0] = test_wait(barrier, 0);
  bulk_load(tile, from, 128, barrier);
  delay();
  out[1] = test_wait(barrier, 0);
  bulk_load(tile + 32, from + 32, 128, barrier);
  wait(barrier, 0);
  out[2] = static_cast<int>(tile[31] + tile[63]);
}

TEST(Barrier, phase_waits_for_all_expected_bytes) {
  TMAOPS_NEEDS_HOPPER();
  std::vector<std::uint32_t> values(64, 1);
  values[31] = 40;
  values[63] = 2;
  const DeviceArray<std::uint32_t> from(values);
  const DeviceArray<int> out(3);
  run<expect_kernel>({.grid = 1, .block = 1}, from.get(), out.get());
  EXPECT_EQ(out.values(), (std::vector<int>{0, 0, 42}));
}

// Warp 0 is slow, writes, and signals; warp 1 waits. Then both meet.
__global__ void named_barrier_kernel(int* out) {
  struct Shared {
    volatile int value, met;
  };
  auto& [value, met] = block_shared<Shared>();
  if (threadIdx.x == 0) {
    value = 0;
    met = 0;
  }
  __syncthreads();
  if (warp_index() == 0) {
    delay();
    value = 42;
    arrive_threads<1>(64);
  } else {
    sync_threads<1>(64);
    out[threadIdx.x - 32] = value;
    delay();
    met = 1;
  }
  sync_threads<2>(64);
  out[32 + threadIdx.x] = met;
}

TEST(Barrier, named_barriers_order_warps) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<int> out(96);
  run<named_barrier_kernel>({.grid = 1, .block = 64}, out.get());
  const auto got = out.values();
  for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(got[i], i < 32 ? 42 : 1) << i;
}

struct alignas(1024) PipelineStage {
  std::uint32_t words[256];
};
using PipelineStorage = StagedStorage<PipelineStage, 3>;

// Warp 0 loads `tiles` tiles of 1 KiB through three stages; two consumer warps sum them, one of them slow.
__global__ void pipeline_kernel(const std::uint32_t* from, int tiles, std::uint32_t* sums, unsigned* alignment) {
  auto& in_front_of_it = block_shared<std::uint32_t[3]>();
  in_front_of_it[threadIdx.x % 3] = 1;
  PipelineStorage& shared = dynamic_shared<PipelineStorage>();
  if (threadIdx.x == 0) shared.ring.init(1, 2);
  __syncthreads();
  if (threadIdx.x == 0) alignment[0] = shared_address(&shared) % kDynamicSharedAlignment + in_front_of_it[0] - 1;
  if (warp_index() == 0) {
    if (elect_one()) {
      Producer<3> producer(shared.ring);
      for (int tile = 0; tile < tiles; ++tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(PipelineStage));
        bulk_load(&shared.stage[stage], from + tile * 256, sizeof(PipelineStage), producer.full(stage));
      }
    }
  } else {
    const int warp = warp_index();
    Consumer<3> consumer(shared.ring);
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = consumer.acquire();
      if (warp == 2) delay(3000);
      std::uint32_t sum = 0;
      for (int i = lane_index(); i < 256; i += kWarpThreads) sum += shared.stage[stage].words[i] * (i + 1);
      sum = warp_sum(sum);
      if (lane_index() == 0) {
        sums[(warp - 1) * tiles + tile] = sum;
        consumer.release(stage);
      }
    }
  }
}

TEST(Pipeline, every_tile_reaches_every_consumer_before_its_stage_is_reused) {
  TMAOPS_NEEDS_HOPPER();
  constexpr int kTiles = 20;
  std::vector<std::uint32_t> values(kTiles * 256);
  std::vector<std::uint32_t> want(kTiles, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint32_t>(i * 2654435761u);
    want[i / 256] += values[i] * static_cast<std::uint32_t>(i % 256 + 1);
  }
  const DeviceArray<std::uint32_t> from(values), sums(2 * kTiles), alignment(1);
  run<pipeline_kernel>({.grid = 1, .block = 96, .shared_bytes = sizeof(PipelineStorage)}, from.get(), kTiles,
                       sums.get(), alignment.get());
  const auto got = sums.values();
  EXPECT_EQ(std::vector<std::uint32_t>(got.begin(), got.begin() + kTiles), want);
  EXPECT_EQ(std::vector<std::uint32_t>(got.begin() + kTiles, got.end()), want) << "the slow consumer";
  EXPECT_EQ(alignment.values()[0], 0u) << "dynamic shared memory does not start at a multiple of 1024";
}

__global__ void warp_kernel(int* out) {
  const int t = threadIdx.x;
  out[t] = elect_one() ? 1 : 0;
  out[96 + t] = warp_index() * 100 + lane_index();
  out[192 + t] = static_cast<int>(warp_sum(static_cast<std::uint32_t>(t)));
  out[288 + t] = static_cast<int>(group_sum<4>(static_cast<float>(t)));
}

TEST(Warp, elects_one_thread_and_sums) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<int> out(384);
  run<warp_kernel>({.grid = 1, .block = 96}, out.get());
  const auto got = out.values();
  for (int warp = 0; warp < 3; ++warp) {
    int elected = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const auto t = static_cast<std::size_t>(warp * 32 + lane);
      elected += got[t];
      EXPECT_EQ(got[96 + t], warp * 100 + lane);
      EXPECT_EQ(got[192 + t], 32 * 32 * warp + 496);
      EXPECT_EQ(got[288 + t], static_cast<int>(t) / 4 * 16 + 6);
    }
    EXPECT_EQ(elected, 1) << "warp " << warp;
  }
}

__global__ void clocks_kernel(std::int64_t* out) {
  const std::int64_t cycle = cycles();
  const std::uint64_t time = global_nanoseconds();
  delay(1000000);
  out[0] = cycles() - cycle;
  out[1] = static_cast<std::int64_t>(global_nanoseconds() - time);
}

TEST(Warp, clocks_advance) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<std::int64_t> out(2);
  run<clocks_kernel>({.grid = 1, .block = 1}, out.get());
  EXPECT_GE(out.values()[0], 1000000);
  EXPECT_GT(out.values()[1], 100000) << "a million cycles take more than 0.1 ms";
}

// 384 threads with 168 registers each; two warpgroups then hold more than that.
__global__ void __launch_bounds__(384, 1) registers_kernel(const float* from, float* to) {
  if (warp_index() < 4) {
    decrease_registers<24>();
    return;
  }
  increase_registers<240>();
  float values[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) values[i] = from[(threadIdx.x + i * 7) % 400];
  float sum = 0.0F;
#pragma unroll
  for (int i = 199; i >= 0; --i) sum = sum * 0.5F + values[i];
  to[threadIdx.x - 128] = sum;
}

TEST(Warp, registers_move_between_warpgroups) {
  TMAOPS_NEEDS_HOPPER();
  std::vector<float> values(400);
  for (std::size_t i = 0; i < 400; ++i) values[i] = static_cast<float>(i % 13);
  const DeviceArray<float> from(values), to(256);
  run<registers_kernel>({.grid = 1, .block = 384}, static_cast<const float*>(from.get()), to.get());
  const auto got = to.values();
  for (std::size_t t = 0; t < 256; ++t) {
    float sum = 0.0F;
    for (std::size_t i = 200; i-- > 0;) sum = sum * 0.5F + values[(t + 128 + i * 7) % 400];
    ASSERT_FLOAT_EQ(got[t], sum);
  }
}

#ifndef TMAOPS_EXECUTOR  // where a kernel begins when the one before it has ended
// The first kernel lets the second start and waits (at most 0.2 s) for its sign of life; then it writes late.
__global__ void first_kernel(volatile int* alive, int* value, int* saw) {
  let_next_kernel_start();
  const std::uint64_t start = global_nanoseconds();
  while (*alive != 7 && global_nanoseconds() - start < 200000000ull) {
  }
  saw[0] = *alive == 7 ? 1 : 0;
  delay(200000);
  *value = 42;
}
__global__ void second_kernel(volatile int* alive, const volatile int* value, int* out) {
  *alive = 7;
  __threadfence();
  wait_for_previous_kernel();
  out[0] = *value;
}

TEST(DependentLaunch, starts_early_and_sees_the_memory_of_the_kernel_before) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<int> alive(1, 0), value(1, 0), saw(1, 0), out(1, 0);
  cudaFuncAttributes loaded{};  // a kernel is loaded at its first use, which would wait for the one that runs
  check_cuda(cudaFuncGetAttributes(&loaded, first_kernel), "load");
  check_cuda(cudaFuncGetAttributes(&loaded, second_kernel), "load");
  launch_kernel<first_kernel>("first", {.grid = 1, .block = 1}, nullptr, static_cast<volatile int*>(alive.get()),
                              value.get(), saw.get());
  launch_kernel<second_kernel>("second", {.grid = 1, .block = 1, .dependent = true}, nullptr,
                               static_cast<volatile int*>(alive.get()), static_cast<const volatile int*>(value.get()),
                               out.get());
  check_cuda(cudaDeviceSynchronize(), "both");
  EXPECT_EQ(out.values()[0], 42) << "did not wait for the memory of the kernel before";
  EXPECT_EQ(saw.values()[0], 1) << "the second kernel did not start while the first ran";
}
#endif

}  // namespace
}  // namespace tmaops
