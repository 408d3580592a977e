// Clusters: ranks, sending to each other's shared memory, multicast.
#include "device/cluster.cuh"
#include "device/fence.cuh"
#include "device/pipeline.cuh"
#include "device/tensor_copy.cuh"
#include "device/warp.cuh"
#include "gpu/support.hpp"
#include "gpu/tensor_map.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;
using test::run;
using namespace device;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 64;
constexpr unsigned kCluster = 4;

// Every block sends to block 0, where the bytes complete on a barrier, and arrives there; block 0 waits for it.
__global__ void send_kernel(std::uint32_t* out) {
  auto& stored = block_shared<std::uint32_t[kCluster][4 * kThreads], 128>();
  auto& barrier = block_shared<Barrier>();
  const std::uint32_t rank = cluster_rank();
  const std::uint32_t t = threadIdx.x;
  if (t == 0) {
    init_barrier(barrier, 1 + kCluster);
    fence_barrier_init();
    if (rank == 0) arrive_expect_bytes(barrier, kCluster * kThreads * 16);
  }
  fence_async_shared();
  __syncthreads();
  cluster_arrive_relaxed();
  cluster_wait();
  const std::uint32_t v = rank * 1000 + t;
  store_async(&stored[rank][4 * t], make_uint4(v, v + 1, v + 2, v + 3), barrier, 0);
  if (t == 0) {
    const std::int64_t start = cycles();
    while (cycles() - start < 10000) {
    }
    if (rank != 3) arrive_at(barrier, 0);
  }
  if (rank == 3 && t == 32) {  // the last arrival, late
    const std::int64_t start = cycles();
    while (cycles() - start < 40000) {
    }
    arrive_at(barrier, 0);
  }
  if (rank == 0) {
    wait(barrier, 0);
    for (std::uint32_t r = 0; r < kCluster; ++r)
      for (int i = 0; i < 4; ++i) out[r * 256 + 4 * t + i] = stored[r][4 * t + i];
  }
  cluster_sync();
}

TEST(Cluster, sends_complete_on_a_barrier_of_another_block) {
  TMAOPS_NEEDS_HOPPER();
  const DeviceArray<std::uint32_t> out(kCluster * 256);
  run<send_kernel>({.grid = kCluster, .block = kThreads, .cluster = kCluster}, out.get());
  const auto got = out.values();
  for (std::uint32_t r = 0; r < kCluster; ++r)
    for (std::uint32_t t = 0; t < kThreads; ++t)
      for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(got[r * 256 + 4 * t + i], r * 1000 + t + i) << "from block " << r;
}

// Each of two blocks loads half of every tile into both, hinted or not.
enum class How { plain, hinted };
struct alignas(1024) Tile64 {
  std::uint16_t words[64 * 8];
};
using MulticastStorage = StagedStorage<Tile64, 2>;

template <How how>
__global__ void multicast_kernel(const __grid_constant__ CUtensorMap map, int tiles, std::uint16_t* to) {
  MulticastStorage& shared = dynamic_shared<MulticastStorage>();
  const std::uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) shared.ring.init(1, 2);  // both blocks free a stage before either half is written again
  cluster_sync();
  if (warp_index() == 0) {
    if (elect_one()) {
      Producer<2> producer(shared.ring);
      for (int tile = 0; tile < tiles; ++tile) {
        const int stage = producer.acquire();
        producer.expect(stage, sizeof(Tile64));
        std::uint16_t* half = shared.stage[stage].words + rank * 256;
        const std::int32_t at[2] = {0, tile * 8 + static_cast<std::int32_t>(rank) * 4};
        if constexpr (how == How::plain) tensor_load_multicast(half, &map, at, producer.full(stage), 3);
        if constexpr (how == How::hinted)
          tensor_load_multicast(half, &map, at, producer.full(stage), 3, CacheHint::evict_first);
      }
    }
  } else {
    Consumer<2> consumer(shared.ring);
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = consumer.acquire();
      for (int i = lane_index(); i < 512; i += 32) to[(rank * tiles + tile) * 512 + i] = shared.stage[stage].words[i];
      __syncwarp();
      if (lane_index() < 2) consumer.release_to(stage, static_cast<std::uint32_t>(lane_index()));
    }
  }
  cluster_sync();
}

template <How how>
void check_multicast(const char* what) {
  constexpr int kTiles = 9;
  const auto values = test::counting(kTiles * 512);
  const DeviceArray<std::uint16_t> from(values), to(2 * values.size());
  const CUtensorMap map = test::encode_tiled<2>(from.get(), {64, kTiles * 8}, {64, 4});
  run<multicast_kernel<how>>({.grid = 2, .block = kThreads, .shared_bytes = sizeof(MulticastStorage), .cluster = 2},
                             map, kTiles, to.get());
  const auto got = to.values();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], values[i % values.size()]) << what << " " << i;
}

TEST(Cluster, multicast_fills_all_blocks) {
  TMAOPS_NEEDS_HOPPER();
  check_multicast<How::plain>("plain");
  check_multicast<How::hinted>("with hint");
}

template <int rank>
__global__ void multicast_rank_kernel(const __grid_constant__ CUtensorMap map, std::uint16_t* to) {
  auto& tile = block_shared<std::uint16_t[2][64], 1024>();
  auto& barrier = block_shared<Barrier>();
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
    arrive_expect_bytes(barrier, 256);
  }
  cluster_sync();
  if (threadIdx.x == 0 && cluster_rank() == 0) {
    const std::int32_t at[rank] = {};
    tensor_load_multicast(tile[0], &map, at, barrier, 3);
    tensor_load_multicast(tile[1], &map, at, barrier, 3, CacheHint::evict_last);
  }
  wait(barrier, 0);
  to[cluster_rank() * 128 + threadIdx.x] = tile[0][threadIdx.x];
  to[cluster_rank() * 128 + 64 + threadIdx.x] = tile[1][threadIdx.x];
  cluster_sync();
}

template <int rank>
void check_multicast_rank() {
  const auto values = test::counting(64);
  const DeviceArray<std::uint16_t> from(values), to(256);
  std::array<std::uint64_t, rank> extents{};
  std::array<std::uint32_t, rank> box{};
  extents.fill(1);
  box.fill(1);
  extents[0] = box[0] = 64;
  const CUtensorMap map = test::encode_tiled(from.get(), extents, box);
  run<multicast_rank_kernel<rank>>({.grid = 2, .block = kThreads, .cluster = 2}, map, to.get());
  const auto got = to.values();
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(got[i], values[i % 64]) << "rank " << rank << ", " << i;
}

TEST(Cluster, multicast_of_every_rank) {
  TMAOPS_NEEDS_HOPPER();
  check_multicast_rank<1>();
  check_multicast_rank<2>();
  check_multicast_rank<3>();
  check_multicast_rank<4>();
  check_multicast_rank<5>();
}

}  // namespace
}  // namespace tmaops
