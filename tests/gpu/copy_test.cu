// Copies without a tensor map: bulk copies, cp.async, 16-byte vectors and matrices.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <numeric>

#include "device/bulk_copy.cuh"
#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "device/matrix.cuh"
#include "device/vector.cuh"
#include "gpu/support.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;
using test::run;
using namespace device;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 128;
constexpr int kWords = 1024;
constexpr std::uint32_t kBytes = kWords * 4;

std::vector<std::uint32_t> numbers(int count, std::uint32_t start = 1) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), start);
  return values;
}

// out[0] = bytes were not there before the copy was issued, out[1] = they were after the wait.
__global__ void bulk_load_kernel(const std::uint32_t* from, std::uint32_t* to, std::uint32_t* out) {
  auto& tile = block_shared<std::uint32_t[kWords], 128>();
  auto& barrier = block_shared<Barrier>();
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect_bytes(barrier, kBytes);
    out[0] = test_wait(barrier, 0) ? 0 : 1;
    bulk_load(tile, from, kBytes, barrier);
  }
  wait(barrier, 0);
  if (threadIdx.x == 0) out[1] = test_wait(barrier, 0) ? 1 : 0;
  for (int i = threadIdx.x; i < kWords; i += kThreads) to[i] = tile[i];
}

TEST(BulkCopy, load_waits_for_its_bytes) {
  TMAOPS_NEEDS_HOPPER();
  const auto input = numbers(kWords);
  const DeviceArray<std::uint32_t> from(input), to(kWords), out(2);
  run<bulk_load_kernel>({.grid = 1, .block = kThreads}, from.get(), to.get(), out.get());
  EXPECT_EQ(to.values(), input);
  EXPECT_EQ(out.values(), (std::vector<std::uint32_t>{1, 1}));
}

// Ten stores from one buffer, each overwritten as soon as wait_stores_read allows.
__global__ void bulk_store_kernel(std::uint32_t* to) {
  auto& tile = block_shared<std::uint32_t[kWords], 128>();
  for (int round = 0; round < 10; ++round) {
    for (int i = threadIdx.x; i < kWords; i += kThreads) tile[i] = round * kWords + i;
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(to + round * kWords, tile, kBytes);
      commit_stores();
      wait_stores_read<0>();
    }
    __syncthreads();
  }
}

TEST(BulkCopy, stores_keep_what_was_there_before_the_buffer_was_reused) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<std::uint32_t> to(10 * kWords);
  run<bulk_store_kernel>({.grid = 1, .block = kThreads}, to.get());
  EXPECT_EQ(to.values(), numbers(10 * kWords, 0));
}

// A prefetch changes nothing that can be seen but time; tests/codegen shows the instruction is there.
__global__ void prefetch_kernel(const std::uint32_t* from, std::uint32_t* to) {
  if (threadIdx.x == 0) bulk_prefetch(from, kBytes);
  if (threadIdx.x == 0) bulk_prefetch(from, kBytes, CacheHint::evict_first);
  for (int i = threadIdx.x; i < kWords; i += kThreads) to[i] = from[i];
}

TEST(BulkCopy, prefetch_leaves_data_alone) {
  TMAOPS_NEEDS_HOPPER();
  const auto input = numbers(kWords);
  const DeviceArray<std::uint32_t> from(input), to(kWords);
  run<prefetch_kernel>({.grid = 1, .block = kThreads}, from.get(), to.get());
  EXPECT_EQ(to.values(), input);
}

// Four and eight bytes, each by the load that cannot be moved.
__global__ void load_now_kernel(const std::uint32_t* from, std::uint32_t* to) {
  for (int i = threadIdx.x; i < kWords / 2; i += kThreads) to[i] = load_now(from + i);
  for (int i = kWords / 4 + threadIdx.x; i < kWords / 2; i += kThreads)
    reinterpret_cast<std::uint64_t*>(to)[i] = load_now(reinterpret_cast<const std::uint64_t*>(from) + i);
}

TEST(Vector, load_now_reads_four_and_eight_bytes) {
  TMAOPS_NEEDS_HOPPER();
  const auto input = numbers(kWords);
  const DeviceArray<std::uint32_t> from(input), to(kWords);
  run<load_now_kernel>({.grid = 1, .block = kThreads}, from.get(), to.get());
  EXPECT_EQ(to.values(), input);
}

// Threads 0-63 copy 16 bytes each, the odd ones masked to `part` bytes; 64-127 copy 8 bytes. Tile poisoned before.
__global__ void cp_async_kernel(const std::uint32_t* from, std::uint32_t* to, std::uint32_t part) {
  auto& tile = block_shared<std::uint32_t[64 * 4 + 64 * 2], 16>();
  for (int i = threadIdx.x; i < 384; i += kThreads) tile[i] = 0xDEADu;
  __syncthreads();
  const int t = threadIdx.x;
  if (t < 64)
    copy_async_16(tile + t * 4, from + t * 4, t % 2 != 0 ? part : 16);
  else
    copy_async_small<8>(tile + 256 + (t - 64) * 2, from + 256 + (t - 64) * 2);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  for (int i = threadIdx.x; i < 384; i += kThreads) to[i] = tile[i];
}

TEST(CpAsync, copies_and_fills_the_masked_rest_with_zero) {
  TMAOPS_NEEDS_HOPPER();
  auto want = numbers(384);
  const DeviceArray<std::uint32_t> from(want), to(384);
  run<cp_async_kernel>({.grid = 1, .block = kThreads}, from.get(), to.get(), 8u);
  for (std::size_t t = 1; t < 64; t += 2) want[t * 4 + 2] = want[t * 4 + 3] = 0;
  EXPECT_EQ(to.values(), want);
}

__global__ void vector_kernel(const uint4* from, uint4* to) {
  const int t = threadIdx.x;
  store_16(to + t, load_16(from + t));
  store_16_streaming(to + kThreads + t, load_16_once(from + kThreads + t));
}

TEST(Vector, loads_and_stores_sixteen_bytes) {
  TMAOPS_NEEDS_HOPPER();
  const auto input = numbers(kThreads * 8);
  const DeviceArray<std::uint32_t> from(input), to(kThreads * 8);
  run<vector_kernel>({.grid = 1, .block = kThreads}, reinterpret_cast<const uint4*>(from.get()),
                     reinterpret_cast<uint4*>(to.get()));
  EXPECT_EQ(to.values(), input);
}

__global__ void vector_add_kernel(float* f, __half* h, __nv_bfloat16* b) {
  const int lane = threadIdx.x % 4;
  add_16(f + lane * 4, make_float4(1.0F, 2.0F, 3.0F, 4.0F));
  const __half2 halves[4] = {{1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}, {7.0F, 8.0F}};
  const __nv_bfloat162 bfloats[4] = {{1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}, {7.0F, 8.0F}};
  add_16(h + lane * 8, *reinterpret_cast<const uint4*>(halves));
  add_16(b + lane * 8, *reinterpret_cast<const uint4*>(bfloats));
}

TEST(Vector, adds_sixteen_bytes_atomically) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<float> f(16, 0);
  const DeviceArray<__half> h(32, 0);
  const DeviceArray<__nv_bfloat16> b(32, 0);
  run<vector_add_kernel>({.grid = 1, .block = 32}, f.get(), h.get(), b.get());  // 8 threads per address
  const auto fv = f.values();
  const auto hv = h.values();
  const auto bv = b.values();
  for (std::size_t i = 0; i < 32; ++i) {
    if (i < 16) EXPECT_EQ(fv[i], 8.0F * static_cast<float>(i % 4 + 1)) << i;
    EXPECT_EQ(__half2float(hv[i]), 8.0F * static_cast<float>(i % 8 + 1)) << i;
    EXPECT_EQ(__bfloat162float(bv[i]), 8.0F * static_cast<float>(i % 8 + 1)) << i;
  }
}

// tile[32][8] of 16-bit numbers 0..255: four 8x8 matrices. Out: what each thread got transposed, and the tile stored.
__global__ void matrix_kernel(std::uint32_t* registers, std::uint16_t* stored) {
  auto& tile = block_shared<std::uint16_t[256], 16>();
  const int t = threadIdx.x;
  std::uint32_t m[4];
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t first = i * 64 + t / 4 * 8 + t % 4 * 2;
    m[i] = first | (first + 1) << 16;
  }
  store_matrices(tile + t * 8, m);
  __syncwarp();
  for (int i = 0; i < 8; ++i) stored[t * 8 + i] = tile[t * 8 + i];
  load_matrices_transposed(m, shared_address(tile + t * 8));
  for (int i = 0; i < 4; ++i) registers[t * 4 + i] = m[i];
}

TEST(Matrix, stores_and_loads_eight_by_eight) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<std::uint32_t> transposed(128);
  const DeviceArray<std::uint16_t> stored(256);
  run<matrix_kernel>({.grid = 1, .block = 32}, transposed.get(), stored.get());
  std::vector<std::uint16_t> all(256);
  std::iota(all.begin(), all.end(), static_cast<std::uint16_t>(0));
  EXPECT_EQ(stored.values(), all);
  const auto t = transposed.values();
  for (std::uint32_t thread = 0; thread < 32; ++thread)
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t row = thread / 4, column = thread % 4 * 2, base = i * 64;
      EXPECT_EQ(t[thread * 4 + i], (base + column * 8 + row) | (base + (column + 1) * 8 + row) << 16);
    }
}

}  // namespace
}  // namespace tmaops
