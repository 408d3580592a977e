// Plain calls with f32 times and rows of 1, 2 or 4 chunks that are short or have few targets. If every lane searched
// for itself, as in touched_rows_lane, half of its instructions would repeat its neighbours' search, and a call of few
// bytes waits for instructions. So each target is located once, by warps that change from block to block: warp k of
// every block has the same scheduler. The times come by ordinary loads, which are under way sooner than a bulk copy.
#include <bit>

#include "ops/resample/forward/shared/plain_spots.cuh"

namespace tmaops::ops::resample::touched_rows_once {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kMostChunks = 4;  // of a row

struct Storage {
  alignas(128) unsigned char bytes[20 * 1024];  // located targets, times; the launch asks for what the tile needs
};

/// Whole chunks on their way from global to shared memory by ordinary loads, all threads of the block together: the
/// first one of each thread is loaded at once, and stored when what else the thread has to load is under way. The
/// caller synchronises behind store().
class TimeLoad {
 public:
  __device__ __forceinline__ TimeLoad(const unsigned char* from, int bytes)
      : from_(reinterpret_cast<const uint4*>(from)), units_(bytes / 16) {
    if (static_cast<int>(threadIdx.x) < units_) first_ = device::load_now(from_ + threadIdx.x);
  }
  __device__ __forceinline__ void store(unsigned char* to) const {
    auto* units = reinterpret_cast<uint4*>(to);
    auto i = static_cast<int>(threadIdx.x);
    if (i < units_) units[i] = first_;
#pragma unroll 1
    for (i += kThreads; i < units_; i += kThreads) units[i] = device::load_now(from_ + i);
  }

 private:
  const uint4* from_;
  int units_;
  uint4 first_{};
};

template <class Value>
__global__ void __launch_bounds__(kThreads, resident_blocks(kThreads, 2048 / kThreads))
    kernel(const __grid_constant__ PlainTile tile) {
  unsigned char* shared = device::dynamic_shared<Storage, kSite.smem>().bytes;
  auto* spots = reinterpret_cast<Spot*>(shared);
  const PlainBlock block = plain_block<float>(tile);
  const auto thread = static_cast<int>(threadIdx.x);
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch.
  const TimeLoad load(tile.times + static_cast<std::int64_t>(block.time_unit) * 16, tile.time_bytes);
  const int searched = thread ^ (static_cast<int>(blockIdx.x) * device::kWarpThreads & (kThreads - 1));
  float q{};
  if (searched < block.targets) q = plain_target<float>(tile, block, searched);
  load.store(shared + tile.times_at);
  __syncthreads();

  // Search.
  if (searched < block.targets) locate_target<Rows16::in_memory>(tile, block, shared, q, searched);
  __syncthreads();
  device::let_next_kernel_start();

  // Combine.
  const int target = thread >> tile.lane_shift;
  if (target >= block.targets) return;
  const int chunk = thread & ((1 << tile.lane_shift) - 1);
  const Spot spot = spots[target];
  const unsigned char* from = tile.values + static_cast<std::int64_t>(block.value_unit(tile, spot.at) + chunk) * 16;
  const uint4 a = device::load_16(from);
  const uint4 b = device::load_16(from + (fabsf(spot.weight) > 0.0f ? block.width : 0));  // not of a missing target
  device::store_16(block.output(tile, target) + chunk * 16, mix_16<Value>(a, b, spot.weight));
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.row_bytes() > 16 * kMostChunks) return Support::no("needs rows of at most 64 bytes");
  return supports_plain_lanes(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  if (problem.batch == 0 || problem.target == 0) return work;
  const int row = static_cast<int>(problem.row_bytes() / 16);
  const bool sparse = problem.source >= 3 * problem.target;
  PlainCut cut;
  cut.threads = kThreads;
  cut.targets = kThreads / row;
  cut.spot_bytes = sizeof(Spot);
  const int margin = time_margin(problem.source, problem.target);
  cut.time_margin = 2 + (sparse ? margin * 2 / 3 : margin * (problem.target < problem.source ? 9 : 7) / 24);
  cut.ahead_times = ahead_times_bytes(problem);
  cut.ahead_values = std::min(sparse ? kAheadBytes / 4 : kAheadBytes, problem.batch * problem.source * row * 8);
  PlainTile tile = make_plain_tile(problem, arguments, cut);
  tile.lane_shift = std::countr_zero(static_cast<unsigned>(row));
  const LaunchShape shape{.grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
                          .block = kThreads,
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  with_value_type(problem.values, [&]<class Value>(Value*) { work.add(kernel<Value>, shape, tile); });
  return work;
}

}  // namespace tmaops::ops::resample::touched_rows_once
