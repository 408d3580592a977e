// Plain calls with rows of 16 * 2^n bytes: only the rows that are needed are read. A window of times is copied to
// shared memory, and every lane locates the target whose chunks it loads, several pairs of loads in flight. That makes
// short lives, so that blocks keep the memory busy up to the end of a call. What the first blocks need is brought into
// the L2 ahead of time.
#include "ops/resample/forward/shared/plain_work.cuh"
#include "ops/resample/forward/shared/resident.cuh"

namespace tmaops::ops::resample::touched_rows_lane {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier times_ready;
  alignas(128) unsigned char bytes[20 * 1024];  // times; the launch asks for what the tile needs
};

template <class Value, int chunks>
__global__ void __launch_bounds__(chunks == 4 ? 128 : 256, resident_blocks(chunks == 4 ? 128 : 256, 8))
    kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const PlainBlock block = plain_block<float>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.times_ready, 1);
    device::fence_barrier_init();
  }
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const int target = static_cast<int>(threadIdx.x) >> tile.lane_shift;
  const bool active = target < block.targets;
  float q{};
  if (active) q = plain_target<float>(tile, block, target);
  if (threadIdx.x == 0) fetch_times(tile, block, shared.bytes, shared.times_ready);
  __syncthreads();  // barriers are initialised

  // Search.
  device::wait(shared.times_ready, 0);
  Place<int> at{0, missing()};
  if (active) at = plain_place(tile, block, shared.bytes, q);
  device::let_next_kernel_start();
  if (!active) return;

  // Combine.
  const int lanes = 1 << tile.lane_shift;
  const int column = (static_cast<int>(threadIdx.x) & (lanes - 1)) * 16;
  const int step = lanes * 16;
  const int second = fabsf(at.weight) > 0.0f ? block.width : 0;  // not of a missing target
  unsigned char* to = block.output(tile, target) + column;
  const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, at.row)) * 16 + column;
  uint4 a[chunks];
  uint4 b[chunks];
#pragma unroll
  for (int k = 0; k < chunks; ++k) {
    a[k] = device::load_16(from + k * step);
    b[k] = device::load_16(from + second + k * step);
  }
  // Ordinary stores: a call reads about as much as it writes here.
#pragma unroll
  for (int k = 0; k < chunks; ++k) device::store_16(to + k * step, mix_16<Value>(a[k], b[k], at.weight));
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  return lane_work<Storage>(kSite, problem, arguments, config, touched_rows_cut,
                            [&]<class Value, int chunks>() { return kernel<Value, chunks>; });
}

}  // namespace tmaops::ops::resample::touched_rows_lane
