// Plain calls that are long: the times and rows around a tile are guessed and fetched at once by two bulk copies. The
// first warps locate the targets for all: a search costs a warp about as many instructions as combining eight chunks
// per lane.
#include "device/fence.cuh"
#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/plain_work.cuh"

namespace tmaops::ops::resample::bulk_window_block {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kMostThreads = 256;
constexpr int kChunks = 4;  // per thread at a time

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;                   // and targets are located
  alignas(128) unsigned char bytes[96 * 1024];  // located targets, times, rows; the launch asks for what the tile needs
};

template <class Time, class Value>
__global__ void __launch_bounds__(kMostThreads, 4) kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
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
  if (threadIdx.x == 0) {
    fetch_times(tile, block, shared.bytes, shared.times_ready);
    fetch_rows(tile, block, {block.first_row, tile.row_capacity}, shared.bytes, shared.rows_ready);
  }
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
  PlainCut cut;
  cut.threads = row >= 32 ? kMostThreads : 128;
  cut.targets = kChunks * std::max(1, cut.threads / row);
  cut.spot_bytes = sizeof(Spot);
  cut.time_margin = time_margin(problem.source, problem.target);
  cut.rows = Rows16::in_shared;
  cut.row_margin = std::min(cut.time_margin, row == 8 ? 8 : 4);
  return plain_work<Storage>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_types(problem, [&]<class Time, class Value>(Time*, Value*) { work.add(kernel<Time, Value>, shape, tile); });
  });
}

}  // namespace tmaops::ops::resample::bulk_window_block
