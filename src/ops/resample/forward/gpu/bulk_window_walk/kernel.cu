// Plain calls with many targets per sample and wide rows of 16-bit values: windows of times and rows by two bulk copies
// as in bulk_window_block, but a lane keeps its column and walks along consecutive targets. Targets between the same
// two samples share what was read. (f32 values would spill registers.)
#include "ops/resample/forward/shared/plain_spots.cuh"
#include "ops/resample/forward/shared/plain_work.cuh"

namespace tmaops::ops::resample::bulk_window_walk {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 256;
constexpr int kStrand = 8;  // targets that a warp walks along

template <class Value>
__global__ void __launch_bounds__(kThreads, 4) kernel(const __grid_constant__ PlainTile tile) {
  Windows& shared = device::dynamic_shared<Windows, kSite.smem>();
  device::let_next_kernel_start();
  const PlainBlock block = plain_block<float>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.times_ready, 1);
    device::init_barrier(shared.rows_ready, 1 + searching_warps(tile.tile, static_cast<int>(blockDim.x)));
    device::fence_barrier_init();
  }
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const auto target = static_cast<int>(threadIdx.x);
  float q{};
  if (target < block.targets) q = plain_target<float>(tile, block, target);
  if (threadIdx.x == 0) fetch_windows(tile, block, shared);
  if (threadIdx.x == device::kWarpThreads) fetch_share(tile.burst, device::CacheHint::evict_last);
  __syncthreads();  // barriers are initialised

  // Search.
  locate_targets<Rows16::in_shared>(tile, block, shared.bytes, q, shared.times_ready, shared.rows_ready);
  device::wait(shared.rows_ready, 0);

  // Combine.
  const auto begin = static_cast<int>(threadIdx.x) / device::kWarpThreads * tile.targets_per_warp;
  const int end = min(begin + tile.targets_per_warp, block.targets);
  const Spot* spots = spots_of(shared.bytes);
  for (int column = device::lane_index() * 16; column < block.width; column += device::kWarpThreads * 16) {
    unsigned char* to = block.output(tile, begin) + column;
    Spot loaded{0, missing()};
    bool first = true;
    Unpacked<Value> a;
    Unpacked<Value> rise;
    uint4 raw{};
    for (int t = begin; t < end; ++t, to += block.width) {
      const Spot spot = spots[t];
      const bool two = fabsf(spot.weight) > 0.0f;
      if (first || spot.at != loaded.at || two != (fabsf(loaded.weight) > 0.0f)) {
        const int second = two ? block.width : 0;
        uint4 next;
        if (spot.at >= 0) {
          const unsigned char* from = array_of(shared.bytes, tile.rows_held) + spot.at + column;
          raw = *reinterpret_cast<const uint4*>(from);
          next = *reinterpret_cast<const uint4*>(from + second);
        } else {
          const unsigned char* from =
              tile.values + static_cast<std::int64_t>(block.value_unit(tile, ~spot.at)) * 16 + column;
          raw = device::load_16(from);
          next = device::load_16(from + second);
        }
        a = unpack<Value>(raw);
        rise = unpack<Value>(next);
#pragma unroll
        for (int i = 0; i < Unpacked<Value>::count; ++i) rise.at[i] -= a.at[i];
        first = false;
      }
      loaded = spot;
      Unpacked<Value> mixed;
#pragma unroll
      for (int i = 0; i < Unpacked<Value>::count; ++i) mixed.at[i] = fmaf(spot.weight, rise.at[i], a.at[i]);
      device::store_16_streaming(to, spot.weight == 0.0f ? raw : pack(mixed));
    }
  }
}

/// Bytes of the values that one burst brings into the L2, in calls that write far more than they read: scattered reads
/// disturb the stream of writes. Only where the call is long enough, and its source fits well inside the L2.
std::int64_t burst_bytes(const Problem& problem) {
  const std::int64_t source = problem.batch * problem.source * problem.row_bytes();
  const std::int64_t output = problem.batch * problem.target * problem.row_bytes();
  return output < 16 * source || output < 128 << 20 || source > 16 << 20 ? 0 : source;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  PlainCut cut = windows_cut(problem, kThreads);
  cut.targets = kThreads / kWarp * kStrand;
  cut.targets_per_warp = kStrand;
  cut.leaves_spots = true;
  cut.burst = burst_bytes(problem);
  cut.ahead_times = cut.burst > 0 ? kAheadBytes : 0;
  cut.ahead_values = std::min(cut.burst, kAheadBytes);
  return plain_work<Windows>(kSite, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    if (problem.values == DType::f16)
      work.add(kernel<__half>, shape, tile);
    else
      work.add(kernel<__nv_bfloat16>, shape, tile);
  });
}

}  // namespace tmaops::ops::resample::bulk_window_walk
