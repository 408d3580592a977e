// Plain calls with rows of any number of chunks and times of any type: only the rows that are needed are read. A window
// of times is copied to shared memory, the first warps locate the targets for all, and the threads load pairs of
// chunks, side by side along the targets.
#include <type_traits>

#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/plain_work.cuh"
#include "ops/resample/forward/shared/resident.cuh"

namespace tmaops::ops::resample::touched_rows_block {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;

struct Storage {
  device::Barrier times_ready;
  device::Barrier located;
  alignas(128) unsigned char bytes[20 * 1024];  // located targets, times; the launch asks for what the tile needs
};

template <class Time, class Value, int chunks>
__global__ void __launch_bounds__(256, resident_blocks(256, chunks == 2 ? 6 : 8))
    kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const PlainBlock block = plain_block<Time>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.times_ready, 1);
    device::init_barrier(shared.located, searching_warps(tile.tile, static_cast<int>(blockDim.x)));
    device::fence_barrier_init();
  }
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const auto target = static_cast<int>(threadIdx.x);
  Time q{};
  if (target < block.targets) q = plain_target<Time>(tile, block, target);
  if (threadIdx.x == 0) fetch_times(tile, block, shared.bytes, shared.times_ready);
  __syncthreads();  // barriers are initialised

  // Search and combine.
  locate_targets<Rows16::in_memory>(tile, block, shared.bytes, q, shared.times_ready, shared.located);
  device::wait(shared.located, 0);
  combine_spots<Value, chunks, Rows16::in_memory>(tile, block, shared.bytes);
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  const int row = static_cast<int>(problem.row_bytes() / 16);
  PlainCut cut;
  cut.threads = kThreads;
  cut.targets = 2 * config.chunks * std::max(1, kThreads / row);
  cut.leaves_spots = true;
  cut.time_margin = time_margin(problem.source, problem.target);
  cut.ahead_times = ahead_times_bytes(problem);
  return plain_work<Storage>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
      if constexpr (std::is_same_v<Time, float>)  // configs() has one chunk for f32 times alone
        if (config.chunks == 1) return work.add(kernel<Time, Value, 1>, shape, tile);
      work.add(kernel<Time, Value, 2>, shape, tile);
    });
  });
}

}  // namespace tmaops::ops::resample::touched_rows_block
