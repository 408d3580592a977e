// Each rule: a kernel that breaks it and a twin that keeps it.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/cuda_launch.hpp"
#include "device/bulk_copy.cuh"
#include "device/cluster.cuh"
#include "device/fence.cuh"
#include "device/matrix.cuh"
#include "device/tensor_copy.cuh"
#include "device/warp.cuh"
#include "device/wgmma.cuh"
#include "executor/findings.hpp"
#include "tma/driver.hpp"
#include "tmaops/error.hpp"

namespace tmaops::executor {
namespace {

enum class Kernel { broken, right };

constexpr int kThreads = 64;
constexpr int kWords = 64;
constexpr std::uint32_t kBytes = kWords * 4;

/// Device memory of the words 0, 1, 2 and so on.
class Words {
 public:
  explicit Words(int count = kWords) {
    std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i);
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, values.size() * 4), "test");
    at_ = static_cast<std::uint32_t*>(memory);
    check_cuda(cudaMemcpy(at_, values.data(), values.size() * 4, cudaMemcpyHostToDevice), "test");
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words() { cudaFree(at_); }
  std::uint32_t* get() const { return at_; }

 private:
  std::uint32_t* at_ = nullptr;
};

/// What a kernel is found to break, under every schedule and some seeds.
template <auto kernel, bool strict = false, std::uint64_t seeds = 4, class... Given>
std::vector<Finding> findings_of(const LaunchShape& shape, Given... given) {
  std::vector<Finding> all;
  for (const Schedule schedule : kSchedules)
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      set_options({.seed = seed, .schedule = schedule, .strict = strict, .global_races = true});
      try {
        launch_kernel<kernel>("test", shape, nullptr, given...);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kernel_breaks_rule);
      }
      for (Finding& finding : take_findings()) all.push_back(std::move(finding));
    }
  set_options({});
  return all;
}

std::string texts(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_text(finding) + "\n";
  return text;
}

void expect_rule(const std::vector<Finding>& findings, Rule rule, std::string_view words) {
  const auto found = std::ranges::find_if(findings, [&](const Finding& one) { return one.rule == rule; });
  ASSERT_NE(found, findings.end()) << "no finding of " << to_string(rule) << ", but\n" << texts(findings);
  EXPECT_NE(to_text(*found).find(words), std::string::npos) << to_text(*found);
  EXPECT_NE(found->line.find("executor/rules_test.cu:"), std::string::npos) << to_text(*found);
}

void expect_nothing(const std::vector<Finding>& findings) { EXPECT_TRUE(findings.empty()) << texts(findings); }

#define TMAOPS_TEST_RULE(rule, shape, words, ...)                                                   \
  TEST(executor_rules, rule) {                                                                      \
    expect_rule(findings_of<rule##_kernel<Kernel::broken>>(shape, __VA_ARGS__), Rule::rule, words); \
    expect_nothing(findings_of<rule##_kernel<Kernel::right>>(shape, __VA_ARGS__));                  \
  }

const LaunchShape kBlock{.block = kThreads};

struct Tile {
  alignas(128) std::uint32_t words[kWords];
  device::Barrier barrier;
};

__device__ void begin(Tile& tile, std::uint32_t arrivals = 1) {
  if (threadIdx.x == 0) {
    device::init_barrier(tile.barrier, arrivals);
    device::fence_barrier_init();
  }
  __syncthreads();
}

__device__ void load(Tile& tile, const std::uint32_t* from) {
  if (threadIdx.x != 0) return;
  device::arrive_expect_bytes(tile.barrier, kBytes);
  device::bulk_load(tile.words, from, kBytes, tile.barrier);
}

template <Kernel which>
__global__ void never_completes_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (threadIdx.x == 0) {
    device::arrive_expect_bytes(tile.barrier, which == Kernel::broken ? kBytes + 64 : kBytes);
    device::bulk_load(tile.words, from, kBytes, tile.barrier);
  }
  device::wait(tile.barrier, 0, {"the words", 3});
}
TMAOPS_TEST_RULE(
    never_completes, kBlock,
    "parity 0 of the barrier for the words, stage 3 (byte 256 of a block_shared of 384 bytes), which is in "
    "phase 0 (parity 0), with 1 of 1 arrivals and 256 of 320 bytes: 64 bytes are missing",
    Words().get())

/// The second wait of a barrier that completes once: for the phase behind it, or for that one again.
template <Kernel which>
__global__ void other_parity_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  load(tile, from);
  device::wait(tile.barrier, 0);
  device::wait(tile.barrier, which == Kernel::broken ? 1 : 0);
}
TEST(executor_rules, never_completes_says_that_the_other_parity_would_have_returned) {
  const Words words;
  expect_rule(findings_of<other_parity_kernel<Kernel::broken>>(kBlock, words.get()), Rule::never_completes,
              "1 arrival is missing; nothing has come in this phase, and a wait for parity 0 would have returned");
  expect_nothing(findings_of<other_parity_kernel<Kernel::right>>(kBlock, words.get()));
}

/// A flag that nobody raises, and a barrier that nobody arrives at.
template <Kernel which>
__global__ void flag_kernel(unsigned* to) {
  auto& flag = device::block_shared<unsigned>();
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (which == Kernel::right && threadIdx.x == 40) atomicExch(&flag, 1u);
  if (threadIdx.x == 3)
    while (atomicAdd(&flag, 0u) == 0) {
    }
  to[threadIdx.x] = 1;
}
template <Kernel which>
__global__ void tested_barrier_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (which == Kernel::right) load(tile, from);
  if (threadIdx.x == 40)
    while (!device::test_wait(tile.barrier, 0)) {
    }
  __syncthreads();
}
TEST(executor_rules, never_completes_where_a_thread_looks_for_a_change) {
  const Words words;
  expect_rule(findings_of<flag_kernel<Kernel::broken>, false, 1>(kBlock, words.get()), Rule::never_completes,
              "it reads byte 0 of a block_shared of 4 bytes again and again, and nothing else happens");
  expect_nothing(findings_of<flag_kernel<Kernel::right>>(kBlock, words.get()));
  expect_rule(
      findings_of<tested_barrier_kernel<Kernel::broken>, false, 1>(kBlock, words.get()), Rule::never_completes,
      "it tests for parity 0 of the barrier again and again, which is in phase 0 (parity 0), with 0 of 1 arrivals");
  expect_nothing(findings_of<tested_barrier_kernel<Kernel::right>>(kBlock, words.get()));
}

template <Kernel which>
__global__ void phase_missed_kernel(int) {
  auto& tile = device::block_shared<Tile>();
  auto& heard = device::block_shared<device::Barrier>();
  if (threadIdx.x == 0) device::init_barrier(heard, 1);
  begin(tile);
  if (threadIdx.x == 0) {
    device::arrive(tile.barrier);
    if (which == Kernel::right) device::wait(heard, 0);
    device::arrive(tile.barrier);
  } else if (threadIdx.x == 32) {
    device::wait(tile.barrier, 0, {"the first phase"});
    device::arrive(heard);
  }
}
TMAOPS_TEST_RULE(phase_missed, kBlock, "went on from phase 0 to 2", 0)

template <Kernel which>
__global__ void too_many_arrivals_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile, which == Kernel::broken ? 1 : 2);
  if (threadIdx.x == 32) device::arrive_expect_bytes(tile.barrier, 16);
  __syncthreads();
  if (threadIdx.x == 0) {
    device::arrive(tile.barrier);
    device::bulk_load(tile.words, from, 16, tile.barrier);
  }
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(too_many_arrivals, kBlock, "counts 1 arrivals and gets one more", Words().get())

template <Kernel which>
__global__ void too_many_bytes_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (threadIdx.x == 0) {
    device::arrive_expect_bytes(tile.barrier, which == Kernel::broken ? 1 << 20 : kBytes);
    device::bulk_load(tile.words, from, kBytes, tile.barrier);
    if (which == Kernel::right) device::wait(tile.barrier, 0);
  }
}
TMAOPS_TEST_RULE(too_many_bytes, kBlock, "at most 1048575 can be counted", Words().get())

template <Kernel which>
__global__ void read_in_flight_kernel(const std::uint32_t* from, std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  load(tile, from);
  if (which == Kernel::right) device::wait(tile.barrier, 0);
  __syncthreads();
  to[threadIdx.x] = tile.words[threadIdx.x];
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(read_in_flight, kBlock, "while it is being written by a bulk load of 256 bytes, issued at",
                 Words().get(), Words().get())

/// What a store brings to global memory is there for the next launch: wait_stores_read() is about shared memory.
template <Kernel which>
__global__ void read_back_kernel(std::uint32_t* stored, std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  tile.words[threadIdx.x] = threadIdx.x;
  device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    device::bulk_store(stored, tile.words, kBytes);
    device::commit_stores();
    device::wait_stores_read();
  }
  __syncthreads();
  to[threadIdx.x] = which == Kernel::broken ? stored[threadIdx.x] : tile.words[threadIdx.x];
}
TEST(executor_rules, read_in_flight_of_global_memory) {
  const Words stored;
  const Words to;
  expect_rule(findings_of<read_back_kernel<Kernel::broken>>(kBlock, stored.get(), to.get()), Rule::read_in_flight,
              "it reads global memory that the store at executor/rules_test.cu:");
  expect_nothing(findings_of<read_back_kernel<Kernel::right>>(kBlock, stored.get(), to.get()));
}

template <Kernel which>
__global__ void written_in_flight_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  load(tile, from);
  if (which == Kernel::right) device::wait(tile.barrier, 0);
  if (threadIdx.x == 0) tile.words[5] = 0;
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(written_in_flight, kBlock, "it writes byte 20 of a block_shared", Words().get())

template <Kernel which>
__global__ void written_while_read_kernel(std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  for (int round = 0; round < 2; ++round) {
    tile.words[threadIdx.x] = threadIdx.x;
    device::fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
      device::bulk_store(to, tile.words, kBytes);
      device::commit_stores();
      if (which == Kernel::right || round == 1) device::wait_stores_read();
    }
    __syncthreads();
  }
}
TMAOPS_TEST_RULE(written_while_read, kBlock, "while a bulk store of 256 bytes, issued at", Words().get())

template <Kernel which>
__global__ void race_kernel(std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  tile.words[threadIdx.x] = threadIdx.x;
  if (which == Kernel::right) __syncthreads();
  to[threadIdx.x] = tile.words[kThreads - 1 - threadIdx.x];
}
TMAOPS_TEST_RULE(race, kBlock, "and nothing orders the two", Words().get())

/// Lanes may store to one word by one instruction, but no more than one value.
template <Kernel which>
__global__ void one_word_kernel(std::uint32_t* to) {
  auto& word = device::block_shared<std::uint32_t>();
  const bool same = which == Kernel::right;
  word = same ? 7 : threadIdx.x / 32;
  __syncthreads();
  to[threadIdx.x] = word;
  to[kWords] = same ? 7 : threadIdx.x;
}
TEST(executor_rules, race_of_stores_of_different_values_to_one_word) {
  const Words words(kWords + 1);
  const auto found = findings_of<one_word_kernel<Kernel::broken>>(kBlock, words.get());
  expect_rule(found, Rule::race, "it writes another value to byte 0 of a block_shared of 4 bytes than thread ");
  expect_rule(found, Rule::global_race, "it writes another value to global memory than thread ");
  expect_nothing(findings_of<one_word_kernel<Kernel::right>>(kBlock, words.get()));
}

template <Kernel which>
__global__ void stored_matrices_kernel(std::uint32_t* to) {
  auto& rows = device::block_shared<uint4[8]>();
  const unsigned lane = threadIdx.x;
  const unsigned other = which == Kernel::broken ? 1 : lane;
  const std::uint32_t words[4] = {lane, other, lane, other};
  device::store_matrices(&rows[lane % 8], words);
  __syncwarp();
  to[lane] = rows[lane % 8].x;
}
TEST(executor_rules, race_of_matrices_that_share_a_row) {
  const Words words;
  expect_rule(findings_of<stored_matrices_kernel<Kernel::broken>>({.block = 32}, words.get()), Rule::race,
              "two lanes give store_matrices the same row");
  expect_nothing(findings_of<stored_matrices_kernel<Kernel::right>, true>({.block = 32}, words.get()));
}

/// Each lane waits in a loop of its own; ldmatrix needs the whole warp.
template <Kernel which>
__global__ void lanes_apart_kernel(const std::uint32_t* from, std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  load(tile, from);
  device::wait(tile.barrier, 0);
  if (which == Kernel::right) __syncwarp();
  std::uint32_t words[4];
  device::load_matrices(words, device::shared_address(tile.words + threadIdx.x % 16 * 4));
  to[threadIdx.x] = words[0];
}
/// One lane initialises a barrier, and the others are at the named barrier before it: that counts the whole warp.
template <Kernel which>
__global__ void lanes_apart_at_barrier_kernel(int) {
  auto& tile = device::block_shared<Tile>();
  if (threadIdx.x == 0) device::init_barrier(tile.barrier, 1);
  if (which == Kernel::right) __syncwarp();
  device::sync_threads<1>(kThreads);
}
TEST(executor_rules, lanes_apart) {
  const Words from;
  const Words to;
  expect_rule(findings_of<lanes_apart_kernel<Kernel::broken>, true>(kBlock, from.get(), to.get()), Rule::lanes_apart,
              "lanes of a warp come to load_matrices by different ways");
  expect_nothing(findings_of<lanes_apart_kernel<Kernel::right>, true>(kBlock, from.get(), to.get()));
  expect_nothing(findings_of<lanes_apart_kernel<Kernel::broken>>(kBlock, from.get(), to.get()));
  expect_rule(findings_of<lanes_apart_at_barrier_kernel<Kernel::broken>, true>(kBlock, 0), Rule::lanes_apart,
              "lanes of a warp come to a named barrier by different ways");
  expect_nothing(findings_of<lanes_apart_at_barrier_kernel<Kernel::right>, true>(kBlock, 0));
}

template <Kernel which>
__global__ void missing_proxy_fence_kernel(std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  tile.words[threadIdx.x] = threadIdx.x;
  if (which == Kernel::right) device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    device::bulk_store(to, tile.words, kBytes);
    device::commit_stores();
    device::wait_stores_read();
  }
}
TMAOPS_TEST_RULE(missing_proxy_fence, kBlock, "there is no fence_async_shared() between the two", Words().get())

/// The copy engine reads what ordinary stores of the same launch have written to global memory.
template <Kernel which>
__global__ void loaded_back_kernel(std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (which == Kernel::broken) from[threadIdx.x] = 1;
  __syncthreads();
  load(tile, from);
  device::wait(tile.barrier, 0);
}
TEST(executor_rules, missing_proxy_fence_of_global_memory) {
  const Words from;
  expect_rule(findings_of<loaded_back_kernel<Kernel::broken>>(kBlock, from.get()), Rule::missing_proxy_fence,
              "a bulk load reads global memory that this launch wrote by ordinary stores at executor/rules_test.cu:");
  expect_nothing(findings_of<loaded_back_kernel<Kernel::right>>(kBlock, from.get()));
}

template <Kernel which>
__global__ void missing_init_fence_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  if (threadIdx.x == 0) {
    device::init_barrier(tile.barrier, 1);
    if (which == Kernel::right) device::fence_barrier_init();
  }
  __syncthreads();
  load(tile, from);
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(missing_init_fence, kBlock, "without fence_barrier_init() after it", Words().get())

template <Kernel which>
__global__ void barrier_not_initialised_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  if (threadIdx.x == 0) {
    device::init_barrier(tile.barrier, 1);
    device::fence_barrier_init();
  }
  if (which == Kernel::right) __syncthreads();
  load(tile, from);
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(barrier_not_initialised, kBlock, "a wait of the barrier at byte 256", Words().get())

template <Kernel which>
__global__ void barrier_overwritten_kernel(int) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (threadIdx.x == 0) {
    if (which == Kernel::broken) tile.barrier.state = 0;
    tile.words[kWords - 1] = 0;
  }
}
TMAOPS_TEST_RULE(barrier_overwritten, kBlock, "which is an initialised barrier", 0)

template <Kernel which>
__global__ void uninitialised_kernel(std::uint32_t* to) {
  auto& tile = device::block_shared<Tile>();
  if (which == Kernel::right || threadIdx.x < 40) tile.words[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = tile.words[threadIdx.x];
}
TMAOPS_TEST_RULE(uninitialised, kBlock, "of a block_shared of 384 bytes, which nothing has written", Words().get())

template <Kernel which>
__global__ void outside_shared_kernel(int) {
  auto& words = device::dynamic_shared<std::uint32_t[kWords]>();
  words[threadIdx.x + (which == Kernel::broken ? 4 : 0)] = 1;
}
TMAOPS_TEST_RULE(outside_shared, (LaunchShape{.block = kThreads, .shared_bytes = kBytes}),
                 ", of the 256 bytes of dynamic shared memory that the launch asks for", 0)
__global__ void outside_variable_kernel(int) { device::block_shared<std::uint32_t[4]>()[threadIdx.x] = 1; }
TEST(executor_rules, outside_shared_names_the_variable) {
  expect_rule(findings_of<outside_variable_kernel>(kBlock, 0), Rule::outside_shared, " of a block_shared of 16 bytes");
}

template <Kernel which>
__global__ void outside_global_kernel(std::uint32_t* to) {
  if (threadIdx.x < kWords + (which == Kernel::broken ? 1 : 0)) to[threadIdx.x] = 1;
}
TMAOPS_TEST_RULE(outside_global, LaunchShape{.block = 96}, "4 bytes behind the end of an allocation of 256 bytes",
                 Words().get())

template <Kernel which>
__global__ void host_memory_kernel(std::uint32_t* device_word, const std::uint32_t* host_word) {
  *device_word = which == Kernel::broken ? *host_word : 1;
}
/// An offset that nobody has written, say: the program goes on to say so.
TEST(executor_rules, host_memory_that_is_not_there) {
  const auto* const nowhere = reinterpret_cast<const std::uint32_t*>(std::uintptr_t{16});
  expect_rule(findings_of<host_memory_kernel<Kernel::broken>>(kBlock, Words().get(), nowhere), Rule::host_memory,
              "that no kernel can reach");
}
__device__ volatile std::uint32_t word_of_the_program;  // a compiler leaves writes out that nobody reads
__global__ void host_memory_variable_kernel() { word_of_the_program = 1; }
TEST(executor_rules, host_memory_that_is_a_device_variable) {
  expect_rule(findings_of<host_memory_variable_kernel>(kBlock), Rule::host_memory,
              "__device__ variables are unknown to the executor");
}
std::vector<std::uint32_t> words_of_the_host(1);
TMAOPS_TEST_RULE(host_memory, LaunchShape{.block = 1}, "that no kernel can reach", Words().get(),
                 words_of_the_host.data())

template <Kernel which>
__global__ void misaligned_kernel(const std::uint32_t* from) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  if (threadIdx.x == 0) {
    device::arrive_expect_bytes(tile.barrier, 32);
    device::bulk_load(tile.words + (which == Kernel::broken ? 2 : 4), from, 32, tile.barrier);
  }
  device::wait(tile.barrier, 0);
}
TMAOPS_TEST_RULE(misaligned, kBlock, "which is no multiple of 16", Words().get())

template <Kernel which>
__global__ void collective_kernel(std::uint32_t* to) {
  if (threadIdx.x < 16)
    to[threadIdx.x] = __shfl_sync(which == Kernel::broken ? 0xffffff00u : 0x0000ffffu, threadIdx.x, 0);
}
TMAOPS_TEST_RULE(collective, LaunchShape{.block = 32}, "with the mask 0xffffff00, which leaves it out", Words().get())

TEST(executor_rules, bad_launch) {
  const Words to;
  for (const LaunchShape& shape : {LaunchShape{.block = 1056}, LaunchShape{.grid = 3, .block = 32, .cluster = 2},
                                   LaunchShape{.grid = 0, .block = 32}, LaunchShape{.grid = {1, 70000}, .block = 32},
                                   LaunchShape{.grid = 16, .block = 32, .cluster = 16}}) {
    const std::vector<Finding> found = findings_of<race_kernel<Kernel::right>>(shape, to.get());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().rule, Rule::bad_launch) << to_text(found.front());
  }
  expect_nothing(findings_of<race_kernel<Kernel::right>>(kBlock, to.get()));
}

template <Kernel which, bool fences = which == Kernel::right>
__global__ void missing_wgmma_fence_kernel(float* to) {
  struct Operands {
    alignas(1024) __half a[64 * 16];
    alignas(1024) __half b[16 * 16];
  };
  auto& operands = device::block_shared<Operands>();
  const __half one = __float2half_rn(1.0f);
  for (int i = threadIdx.x; i < 64 * 16; i += 128) operands.a[i] = one;
  for (int i = threadIdx.x; i < 16 * 16; i += 128) operands.b[i] = one;
  device::fence_async_shared();
  __syncthreads();
  const auto a = device::operand_descriptor<device::Swizzle::b32>(operands.a, 0, 256);
  const auto b = device::operand_descriptor<device::Swizzle::b32>(operands.b, 0, 256);
  float sums[8];
  if (fences) device::wgmma_fence();
  device::Wgmma<__half, 16>::multiply(sums, a, b, false);
  device::wgmma_commit();
  if (which == Kernel::right || !fences) device::wgmma_wait();
  device::pin_registers(sums);
  for (int i = 0; i < 8; ++i) to[threadIdx.x * 8 + i] = sums[i];
}
TEST(executor_rules, missing_wgmma_fence) {
  const Words to(1024);
  const LaunchShape shape{.block = 128};
  auto* const sums = reinterpret_cast<float*>(to.get());
  expect_rule(findings_of<missing_wgmma_fence_kernel<Kernel::broken>>(shape, sums), Rule::missing_wgmma_fence,
              "has no wgmma_fence() before it");
  expect_nothing(findings_of<missing_wgmma_fence_kernel<Kernel::right>>(shape, sums));
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(sums[i], 16.0f) << i;
}
/// One warp of four leaves an instruction of the warpgroup out.
template <Kernel which>
__global__ void __launch_bounds__(128, 1) three_warps_kernel(int) {
  if (which == Kernel::right || threadIdx.x < 96) device::decrease_registers<64>();
}
TEST(executor_rules, collective_of_a_warpgroup) {
  const LaunchShape shape{.block = 128};
  expect_rule(findings_of<three_warps_kernel<Kernel::broken>>(shape, 0), Rule::collective,
              "warps 0 and 3 are of one warpgroup and have not executed the same wgmma and setmaxnreg instructions");
  expect_nothing(findings_of<three_warps_kernel<Kernel::right>>(shape, 0));
}

/// Two warpgroups want registers that the third one has to give back before.
template <int left>
__global__ void __launch_bounds__(384, 1) three_groups_kernel(int) {
  if (threadIdx.x < 128)
    device::decrease_registers<left>();
  else
    device::increase_registers<240>();
}
TEST(executor_rules, never_completes_where_nobody_gives_registers) {
  const LaunchShape shape{.block = 384};
  expect_rule(findings_of<three_groups_kernel<40>>(shape, 0), Rule::never_completes,
              "waiting for increase_registers<240>(): each thread of its warp has 168, and other warps have left 8 for "
              "it by decrease_registers()");
  expect_nothing(findings_of<three_groups_kernel<24>>(shape, 0));
  expect_rule(findings_of<three_groups_kernel<176>>(shape, 0), Rule::collective,
              "decrease_registers<176>(), where each thread has at most 168");
}

TEST(executor_rules, missing_wgmma_wait) {
  const Words to(1024);
  auto* const sums = reinterpret_cast<float*>(to.get());
  expect_rule(findings_of<missing_wgmma_fence_kernel<Kernel::broken, true>>({.block = 128}, sums),
              Rule::missing_wgmma_wait, "it reads accumulators of the wgmma issued at executor/rules_test.cu:");
}

template <Kernel which>
__global__ void unknown_arrival_kernel(int) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  device::cluster_sync();
  if (threadIdx.x == 0) device::arrive_at(tile.barrier, device::cluster_rank() ^ 1u);
  if (which == Kernel::right) device::wait(tile.barrier, 0);
}
TEST(executor_rules, ends_too_early_for_an_arrival_of_another_block) {
  const LaunchShape pair{.grid = 2, .block = kThreads, .cluster = 2};
  for (const Finding& one : findings_of<unknown_arrival_kernel<Kernel::broken>>(pair, 0))
    EXPECT_EQ(one.rule, Rule::ends_too_early);
  expect_rule(findings_of<unknown_arrival_kernel<Kernel::broken>>(pair, 0), Rule::ends_too_early, "nothing orders the");
  expect_nothing(findings_of<unknown_arrival_kernel<Kernel::right>>(pair, 0));
}

template <Kernel which>
__global__ void trap_kernel(int) {
  if (which == Kernel::broken && threadIdx.x == 3) device::trap();
}
TMAOPS_TEST_RULE(trap, kBlock, "the kernel ends itself", 0)

/// Rows of `columns` 16-bit elements that lie 32 bytes apart, in boxes of 16 x 4.
tma::TensorMap map_of(const void* memory, std::int64_t columns) {
  tma::TensorMapSpec spec{.dtype = tma::ElementType::u16,
                          .address = reinterpret_cast<std::uintptr_t>(memory),
                          .dims = {columns, 4},
                          .strides = {32},
                          .box = {16, 4}};
  return tma::encode_valid(spec, 0);
}

/// What a block leaves under way.
enum class Left { nothing, store, uncommitted_store, tensor_store, load };
template <Left left>
__global__ void ends_too_early_kernel(std::uint32_t* memory, const __grid_constant__ tma::TensorMap map) {
  auto& tile = device::block_shared<Tile>();
  begin(tile);
  tile.words[threadIdx.x] = threadIdx.x;
  device::fence_async_shared();
  __syncthreads();
  if (left == Left::load) load(tile, memory);
  if (left == Left::load || threadIdx.x != 0) return;
  if (left == Left::tensor_store)
    device::tensor_store(&map, {0, 0}, tile.words);
  else
    device::bulk_store(memory, tile.words, kBytes);
  if (left != Left::uncommitted_store) device::commit_stores();
  if (left == Left::nothing || left == Left::uncommitted_store) device::wait_stores_read();
}
TEST(executor_rules, ends_too_early) {
  const Words words;
  const auto expect_in_every_run = [&]<Left left>(std::string_view what) {
    const auto findings = findings_of<ends_too_early_kernel<left>>(kBlock, words.get(), map_of(words.get(), 16));
    EXPECT_EQ(findings.size(), 16u) << texts(findings);
    expect_rule(findings, Rule::ends_too_early, what);
  };
  expect_in_every_run.operator()<Left::store>("may end while a bulk store of 256 bytes still reads its shared memory");
  expect_in_every_run.operator()<Left::uncommitted_store>("may end while a bulk store of 256 bytes still reads");
  expect_in_every_run.operator()<Left::tensor_store>("may end while the tensor store at {0, 0} still reads");
  expect_in_every_run.operator()<Left::load>("may end while a bulk load of 256 bytes still writes its shared memory");
  expect_nothing(findings_of<ends_too_early_kernel<Left::nothing>>(kBlock, words.get(), map_of(words.get(), 16)));
}

template <Kernel which>
__global__ void tensor_store_kernel(const __grid_constant__ tma::TensorMap map) {
  auto& tile = device::block_shared<std::uint16_t[64], 128>();
  tile[threadIdx.x] = static_cast<std::uint16_t>(1000 + threadIdx.x);
  device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    device::tensor_store(&map, {0, 0}, tile);
    device::commit_stores();
    device::wait_stores_read();
  }
}
TEST(executor_rules, store_beyond_tensor) {
  const Words rows(32);
  const auto kernel = findings_of<tensor_store_kernel<Kernel::broken>>(kBlock, map_of(rows.get(), 5));
  expect_rule(kernel, Rule::store_beyond_tensor, "writes 6 bytes beyond the 5 elements of each row");
  const auto* const stored = reinterpret_cast<const std::uint16_t*>(rows.get());
  for (int row = 0; row < 4; ++row)
    for (int i = 0; i < 16; ++i) {
      const int before = i % 2 == 0 ? row * 8 + i / 2 : 0;
      EXPECT_EQ(stored[row * 16 + i], i < 8 ? 1000 + row * 16 + i : before) << row << ", " << i;
    }
  expect_nothing(findings_of<tensor_store_kernel<Kernel::right>>(kBlock, map_of(rows.get(), 8)));
}

TEST(executor_rules, bad_tensor_map) {
  const Words rows(32);
  expect_rule(findings_of<tensor_store_kernel<Kernel::right>>(kBlock, tma::TensorMap{}), Rule::bad_tensor_map,
              "through 128 bytes that are no encoded map, needs an encoded one of mode tiled");
}

template <Kernel which>
__global__ void wrong_swizzle_kernel(const __grid_constant__ tma::TensorMap map, float* to) {
  constexpr auto read = which == Kernel::broken ? device::Swizzle::none : device::Swizzle::b32;
  struct Operand {
    alignas(1024) __half rows[64][16];
    device::Barrier barrier;
  };
  auto& operand = device::block_shared<Operand>();
  if (threadIdx.x == 0) {
    device::init_barrier(operand.barrier, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(operand.barrier, sizeof(operand.rows));
    device::tensor_load(operand.rows, &map, {0, 0}, operand.barrier);
  }
  __syncthreads();
  device::wait(operand.barrier, 0);
  const auto rows = device::operand_descriptor<read>(operand.rows, 0, 256);
  float sums[8];
  device::wgmma_fence();
  device::Wgmma<__half, 16>::multiply(sums, rows, rows, false);
  device::wgmma_commit();
  device::wgmma_wait();
  device::pin_registers(sums);
  to[threadIdx.x] = sums[0];
}
TEST(executor_rules, wrong_swizzle) {
  const Words rows(64 * 8);
  const Words to(128);
  const LaunchShape shape{.block = 128};
  auto* const sums = reinterpret_cast<float*>(to.get());
  const tma::TensorMap map = tma::encode_valid({.dtype = tma::ElementType::f16,
                                                .address = reinterpret_cast<std::uintptr_t>(rows.get()),
                                                .dims = {16, 64},
                                                .strides = {32},
                                                .box = {16, 64},
                                                .swizzle = tma::Swizzle::b32},
                                               0);
  expect_rule(findings_of<wrong_swizzle_kernel<Kernel::broken>>(shape, map, sums), Rule::wrong_swizzle,
              "with the swizzle none, and the tensor load at executor/rules_test.cu:");
  expect_nothing(findings_of<wrong_swizzle_kernel<Kernel::right>>(shape, map, sums));
}

/// A stride between groups of eight rows that begins them within the pattern of the swizzle.
template <Kernel which>
__global__ void wrong_stride_kernel(int) {
  auto& rows = device::block_shared<__half[64 * 64], 1024>();
  for (int i = threadIdx.x; i < 64 * 64; i += 128) rows[i] = __float2half_rn(1.0f);
  device::fence_async_shared();
  __syncthreads();
  const auto operand = device::operand_descriptor<device::Swizzle::b128>(rows, 0, which == Kernel::broken ? 512 : 1024);
  float sums[8];
  device::wgmma_fence();
  device::Wgmma<__half, 16>::multiply(sums, operand, operand, false);
  device::wgmma_commit();
  device::wgmma_wait();
}
TEST(executor_rules, misaligned_stride_of_an_operand) {
  const LaunchShape shape{.block = 128};
  expect_rule(findings_of<wrong_stride_kernel<Kernel::broken>>(shape, 0), Rule::misaligned,
              "an operand with a stride of 512 bytes, no multiple of the 1024 after which its swizzle repeats");
  expect_nothing(findings_of<wrong_stride_kernel<Kernel::right>>(shape, 0));
}

template <Kernel which>
__global__ void multicast_kernel(const __grid_constant__ tma::TensorMap map) {
  auto& tile = device::block_shared<std::uint16_t[64], 128>();
  auto& barrier = device::block_shared<device::Barrier>();
  if (threadIdx.x == 0) {
    device::init_barrier(barrier, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(barrier, sizeof(tile));
    device::tensor_load_multicast(tile, &map, {0, 0}, barrier, which == Kernel::broken ? 0 : 1);
  }
  __syncthreads();
  device::wait(barrier, 0);
}
TEST(executor_rules, collective_multicast_to_no_block) {
  const Words rows(32);
  expect_rule(findings_of<multicast_kernel<Kernel::broken>>(kBlock, map_of(rows.get(), 16)), Rule::collective,
              "a multicast to none of the 1 blocks of the cluster");
  expect_nothing(findings_of<multicast_kernel<Kernel::right>>(kBlock, map_of(rows.get(), 16)));
}

/// A map may lie in global memory, but then the kernel has to acquire it, which the device layer cannot.
__global__ void map_in_memory_kernel(const void* map) {
  auto& tile = device::block_shared<std::uint16_t[64], 128>();
  auto& barrier = device::block_shared<device::Barrier>();
  if (threadIdx.x == 0) {
    device::init_barrier(barrier, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(barrier, sizeof(tile));
    device::tensor_load(tile, map, {0, 0}, barrier);
  }
  __syncthreads();
  device::wait(barrier, 0);
}
TEST(executor_rules, map_not_acquired) {
  const Words rows(32);
  const Words memory(sizeof(tma::TensorMap) / 4);
  const tma::TensorMap map = map_of(rows.get(), 16);
  std::memcpy(memory.get(), &map, sizeof(map));
  expect_rule(findings_of<map_in_memory_kernel>(kBlock, memory.get()), Rule::map_not_acquired,
              "without fence.proxy.tensormap it may be an older one");
}

TEST(executor_rules, bad_tensor_map_names_im2col) {
  const Words pixels(64 * 8);
  tma::TensorMapSpec spec{.mode = tma::Mode::im2col,
                          .dtype = tma::ElementType::u16,
                          .address = reinterpret_cast<std::uintptr_t>(pixels.get()),
                          .dims = {16, 4, 8},
                          .strides = {32, 128},
                          .lower_corner = {0},
                          .upper_corner = {0},
                          .channels_per_pixel = 16,
                          .pixels_per_column = 4};
  expect_rule(findings_of<tensor_store_kernel<Kernel::right>>(kBlock, tma::encode_valid(spec, 0)), Rule::bad_tensor_map,
              "through a map of another mode, needs an encoded one of mode tiled");
}

template <Kernel which>
__global__ void first_kernel(std::uint32_t* to) {
  to[threadIdx.x] = threadIdx.x;
}
template <Kernel which>
__global__ void dependent_kernel(const std::uint32_t* from, std::uint32_t* to) {
  if (which == Kernel::right && threadIdx.x == 0) device::wait_for_previous_kernel();
  __syncthreads();  // one thread waits for all
  to[threadIdx.x] = from[threadIdx.x] + 1;
}
TEST(executor_rules, not_waited_for_kernel) {
  const Words from;
  const Words to;
  const auto run = [&](auto* second, bool dependent) {
    Work work({"test"}, {DeviceType::cuda, 0});
    work.add(first_kernel<Kernel::right>, kBlock, from.get());
    LaunchShape shape = kBlock;
    shape.dependent = dependent;
    work.add(second, shape, from.get(), to.get());
    try {
      work.run(nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kernel_breaks_rule);
    }
    return take_findings();
  };
  expect_rule(run(dependent_kernel<Kernel::broken>, true), Rule::not_waited_for_kernel,
              "it reads global memory before wait_for_previous_kernel(): this launch is a dependent one");
  expect_nothing(run(dependent_kernel<Kernel::right>, true));
  expect_nothing(run(dependent_kernel<Kernel::broken>, false));
}

/// What a kernel before the last one did has ended where the last one waited for it before it let the next one start.
template <Kernel which>
__global__ void middle_kernel(std::uint32_t* to) {
  if (which == Kernel::broken) device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  if (which == Kernel::right) device::let_next_kernel_start();
  to[threadIdx.x] = 1;
}
TEST(executor_rules, not_waited_for_kernel_before_the_last) {
  const Words from, between, to;
  const auto run = [&](auto* middle) {
    Work work({"test"}, {DeviceType::cuda, 0});
    LaunchShape dependent = kBlock;
    dependent.dependent = true;
    for (const Words* words : {&from, &to}) work.add(first_kernel<Kernel::right>, kBlock, words->get());
    work.add(middle, dependent, between.get());
    work.add(dependent_kernel<Kernel::broken>, dependent, from.get(), to.get());
    try {
      work.run(nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kernel_breaks_rule);
    }
    return take_findings();
  };
  expect_rule(run(middle_kernel<Kernel::broken>), Rule::not_waited_for_kernel, "it writes global memory before");
  expect_nothing(run(middle_kernel<Kernel::right>));
}

/// The last block adds up what all have stored: the blocks tell each other by an atomic operation between fences.
template <Kernel which>
__global__ void global_race_kernel(std::uint32_t* parts, std::uint32_t* count) {
  auto& is_last = device::block_shared<std::uint32_t>();
  parts[blockIdx.x] = blockIdx.x;
  if (which == Kernel::right) __threadfence();
  is_last = atomicAdd(count, 1u) == gridDim.x - 1 ? 1 : 0;
  if (which == Kernel::right) __threadfence();
  if (is_last == 0) return;
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
  *count = sum;
}
TEST(executor_rules, global_race) {
  const LaunchShape blocks{.grid = 3, .block = 1};
  const auto run = [&](auto kernel) {
    const Words parts;
    const Words count;
    return findings_of<kernel()>(blocks, parts.get(), count.get());
  };
  expect_rule(run([] { return global_race_kernel<Kernel::broken>; }), Rule::global_race,
              "it reads global memory that block 0 of the grid has written at executor/rules_test.cu:");
  expect_nothing(run([] { return global_race_kernel<Kernel::right>; }));
}

/// A lock that warps of several blocks take by turns.
__global__ void locked_kernel(unsigned* lock, std::uint32_t* sum) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  __threadfence();
  *sum += 1;
  __threadfence();
  atomicExch(lock, 0u);
}
__global__ void atomics_kernel(unsigned* to) {
  atomicOr(to, 1u << threadIdx.x);
  atomicXor(to + 1, 3u);
  atomicAnd(to + 2, ~(1u << threadIdx.x));
  atomicSub(to + 3, 2u);
  atomicInc(to + 4, 9u);
  atomicDec(to + 5, 9u);
}
TEST(executor, has_the_atomic_operations) {
  const Words lock;
  const Words sum;
  expect_nothing(findings_of<locked_kernel>({.grid = 3, .block = 64}, lock.get(), sum.get()));
  EXPECT_EQ(sum.get()[0], 6u * 16) << "16 runs of six warps";
  const Words to;
  launch_kernel<atomics_kernel>("test", {.block = 16}, nullptr, to.get());
  expect_nothing(take_findings());
  EXPECT_EQ(std::vector<std::uint32_t>(to.get(), to.get() + 6),
            (std::vector<std::uint32_t>{0xffff, 1, 0, 0xffffffe3, 0, 9}));
}

/// A shuffle between two accesses to shared memory: the hardware's order, which PTX does not promise.
__global__ void shuffled_kernel(std::uint32_t* to) {
  auto& word = device::block_shared<std::uint32_t>();
  if (threadIdx.x == 0) word = 1;
  __syncwarp();
  to[threadIdx.x] = word + __shfl_sync(0xffffffffu, word, 1);
  if (threadIdx.x == 5) word = 2;
}
TEST(executor, is_stricter_when_asked) {
  const Words to;
  for (const bool strict : {false, true}) {
    set_options({.strict = strict});
    try {
      launch_kernel<shuffled_kernel>("test", {.block = 32}, nullptr, to.get());
    } catch (const Error&) {
    }
    const std::vector<Finding> found = take_findings();
    if (strict)
      expect_rule(found, Rule::race, " has read, and nothing orders the two");
    else
      expect_nothing(found);
  }
  set_options({});
}

TEST(executor, runs_one_launch_by_the_schedule) {
  const Words to;
  const auto run = [&](std::uint64_t only) {
    set_options({.seed = 3, .only_launch = only});
    for (int i = 0; i < 2; ++i) try {
        launch_kernel<race_kernel<Kernel::broken>>("test", kBlock, nullptr, to.get());
      } catch (const Error&) {
      }
    std::string found;
    for (const Finding& finding : take_findings()) found += to_text(finding);
    set_options({});
    return found;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1).find("launch 1"), std::string::npos) << run(1);
}

TEST(executor, has_a_test_of_every_rule) {
  const auto& unit = *testing::UnitTest::GetInstance();
  std::string tested;
  for (int i = 0; i < unit.total_test_suite_count(); ++i)
    if (const testing::TestSuite& suite = *unit.GetTestSuite(i); std::string_view(suite.name()) == "executor_rules")
      for (int k = 0; k < suite.total_test_count(); ++k) tested += suite.GetTestInfo(k)->name() + std::string(" ");
#define TMAOPS_RULE(id, text) EXPECT_NE((" " + tested).find(" " #id " "), std::string::npos) << #id;
#include "executor/rules.def"
#undef TMAOPS_RULE
}

TEST(executor, gives_the_same_findings_for_the_same_seed) {
  const auto run = [] {
    std::vector<std::string> found;
    for (const Finding& finding : findings_of<race_kernel<Kernel::broken>>(kBlock, Words().get()))
      found.push_back(finding.thread + finding.text);
    return found;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace tmaops::executor
