// Plain calls with rows of any number of chunks and times of any type: the times and rows around a tile are guessed and
// fetched at once by two bulk copies. The first warps locate the targets for all: a search costs a warp about as many
// instructions as combining eight chunks per lane.
#include "ops/resample/forward/shared/plain_work.cuh"

namespace tmaops::ops::resample::bulk_window_block {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kMostThreads = 256;
constexpr int kChunks = 4;  // per thread at a time

/// The places of located targets.
__device__ __forceinline__ Spot* spots_of(unsigned char* shared) { return array_of(shared, SharedArray<Spot>{}); }

/// Leaves the place of target t in shared memory.
template <class Time>
__device__ __forceinline__ void locate_target(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                              Time q, int t) {
  const Place<int> at = plain_place(tile, block, shared, q);
  const int offset = holds(tile, block.first_row, at) ? (at.row - block.first_row) * block.width : ~at.row;
  spots_of(shared)[t] = {offset, at.weight};
}

/// How many warps locate_targets() keeps busy: so often it arrives at `placed`.
__host__ __device__ constexpr int searching_warps(int targets, int threads) {
  return ((targets < threads ? targets : threads) + device::kWarpThreads - 1) / device::kWarpThreads;
}

/// The first warps locate the targets of the tile, one per lane; `q` is the thread's first target time.
template <class Time>
__device__ __forceinline__ void locate_targets(const PlainTile& tile, const PlainBlock& block, unsigned char* shared,
                                               Time q, device::Barrier& times_ready, device::Barrier& placed) {
  const auto threads = static_cast<int>(blockDim.x);
  if (static_cast<int>(threadIdx.x) / device::kWarpThreads >= searching_warps(tile.tile, threads)) return;
  device::wait(times_ready, 0);
  for (auto t = static_cast<int>(threadIdx.x); t < block.targets;) {
    locate_target(tile, block, shared, q, t);
    t += threads;
    if (t < block.targets) q = plain_target<Time>(tile, block, t);
  }
  __syncwarp();
  if (device::lane_index() == 0) device::arrive(placed);
}

/// Makes the tile's rows, the block's threads side by side along its targets: `items` chunks per thread at a time, all
/// loaded before the first is used.
template <class Value, int items>
__device__ __forceinline__ void combine_spots(const PlainTile& tile, const PlainBlock& block, unsigned char* shared) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int first = row_of(tile.chunks, thread);
  const int column = (thread - first * tile.chunks.count) * 16;
  const int end = first < tile.step ? block.targets : 0;  // the block need not be a multiple of a row
  const Spot* spots = spots_of(shared);
  const unsigned char* held = array_of(shared, tile.rows_held) + column;
  const unsigned char* values = tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16 + column;
  unsigned char* output = block.output(tile, 0) + column;
#pragma unroll 1
  for (int base = first; base < end; base += items * tile.step) {
    uint4 a[items];
    uint4 b[items];
    float weight[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int t = base + k * tile.step;
      if (t >= end) break;
      const Spot spot = spots[t];
      weight[k] = spot.weight;
      const int second = fabsf(spot.weight) > 0.0f ? block.width : 0;  // not of a missing target
      if (spot.at >= 0) {
        a[k] = *reinterpret_cast<const uint4*>(held + spot.at);
        b[k] = *reinterpret_cast<const uint4*>(held + spot.at + second);
      } else {
        const unsigned char* from = values + static_cast<std::int64_t>(~spot.at) * block.width;
        a[k] = device::load_16(from);
        b[k] = device::load_16(from + second);
      }
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int t = base + k * tile.step;
      if (t >= end) break;
      device::store_16_streaming(output + static_cast<std::int64_t>(t) * block.width,
                                 mix_16<Value>(a[k], b[k], weight[k]));
    }
  }
}

template <class Time, class Value>
__global__ void __launch_bounds__(kMostThreads, 4) kernel(const __grid_constant__ PlainTile tile) {
  Windows& shared = device::dynamic_shared<Windows, kSite.smem>();
  const PlainBlock block = plain_block<Time>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.times_ready, 1);
    device::init_barrier(shared.rows_ready, 1 + searching_warps(tile.tile, static_cast<int>(blockDim.x)));
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const auto target = static_cast<int>(threadIdx.x);
  Time q{};
  if (target < block.targets) q = plain_target<Time>(tile, block, target);
  if (threadIdx.x == 0) fetch_windows(tile, block, shared);
  __syncthreads();  // barriers are initialised

  // Search and combine.
  locate_targets(tile, block, shared.bytes, q, shared.times_ready, shared.rows_ready);
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  combine_spots<Value, kChunks>(tile, block, shared.bytes);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  PlainCut cut = windows_cut(problem, row >= 32 ? kMostThreads : 128);
  cut.targets = kChunks * std::max(1, cut.threads / row);
  cut.leaves_spots = true;
  return plain_work<Windows>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, tile); });
  });
}

}  // namespace tmaops::ops::resample::bulk_window_block
