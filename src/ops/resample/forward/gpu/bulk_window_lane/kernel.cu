// Plain calls that are short: the times and rows around a tile are guessed and fetched at once by two bulk copies.
// Every lane locates the target whose chunks it combines: lanes of one target repeat its search in step, and nothing is
// passed between threads. This is the shortest way from times to output.
#include "ops/resample/forward/shared/plain_work.cuh"

namespace tmaops::ops::resample::bulk_window_lane {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

template <class Value, int chunks>
__global__ void __launch_bounds__(chunks == 4 ? 128 : 256, chunks == 4 ? 8 : 6)
    kernel(const __grid_constant__ PlainTile tile) {
  Windows& shared = device::dynamic_shared<Windows, kSite.smem>();
  // With one chunk per lane the next kernel may start at once; with more it pays to let it wait for the rows.
  constexpr bool early = chunks == 1;
  if constexpr (early) device::let_next_kernel_start();
  const PlainBlock block = plain_block<float>(tile);
  if (threadIdx.x == 0) init_barriers(shared);
  device::wait_for_previous_kernel();

  // Fetch.
  const int target = static_cast<int>(threadIdx.x) >> tile.lane_shift;
  const bool active = target < block.targets;
  float q{};
  if (active) q = plain_target<float>(tile, block, target);
  if (threadIdx.x == 0) fetch_windows(tile, block, shared);
  __syncthreads();  // barriers are initialised

  // Search.
  device::wait(shared.times_ready, 0);
  Place<int> at{0, missing()};
  if (active) at = plain_place(tile, block, shared.bytes, q);

  // Combine.
  device::wait(shared.rows_ready, 0);
  if constexpr (!early) device::let_next_kernel_start();
  if (!active) return;
  const int lanes = 1 << tile.lane_shift;
  const int column = (static_cast<int>(threadIdx.x) & (lanes - 1)) * 16;
  const int step = lanes * 16;
  const int second = fabsf(at.weight) > 0.0f ? block.width : 0;  // not of a missing target
  unsigned char* to = block.output(tile, target) + column;
  uint4 a[chunks];
  uint4 b[chunks];
  if (holds(tile, block.first_row, at)) {
    const unsigned char* from =
        array_of(shared.bytes, tile.rows_held) + (at.row - block.first_row) * block.width + column;
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      a[k] = *reinterpret_cast<const uint4*>(from + k * step);
      b[k] = *reinterpret_cast<const uint4*>(from + second + k * step);
    }
  } else {
    const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, at.row)) * 16 + column;
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      a[k] = device::load_16(from + k * step);
      b[k] = device::load_16(from + second + k * step);
    }
  }
#pragma unroll
  for (int k = 0; k < chunks; ++k) device::store_16_streaming(to + k * step, mix_16<Value>(a[k], b[k], at.weight));
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  return lane_work<Windows>(kSite, problem, arguments, config, windows_cut,
                            [&]<class Value, int chunks>() { return kernel<Value, chunks>; });
}

}  // namespace tmaops::ops::resample::bulk_window_lane
