// Plain calls that are long: the times and rows around a tile are guessed and fetched at once by two bulk copies. The
// first warps locate the targets for all: a search costs a warp about as many instructions as combining eight chunks
// per lane.
#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/plain_work.cuh"

namespace tmaops::ops::resample::bulk_window_block {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kMostThreads = 256;
constexpr int kChunks = 4;  // per thread at a time

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
  locate_targets<Rows16::in_shared>(tile, block, shared.bytes, q, shared.times_ready, shared.rows_ready);
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  combine_spots<Value, kChunks, Rows16::in_shared>(tile, block, shared.bytes);
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
