// One memory latency instead of two: the rows a tile of targets needs are guessed from its position, and the window of
// stamps and the window of rows are fetched at once by two bulk copies. The threads search the stamps while the rows
// arrive, then read the rows from shared memory. Rows and stamps outside the windows are read from global memory.
#include "ops/resample/cuda/tile_plan.cuh"

namespace tmaops::ops::resample::bulk_window {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 512;
constexpr int kPrefetchBlocks = 528;  // 4 per multiprocessor

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;  // general calls
  alignas(128) unsigned char bytes[kMostTileBytes];  // stamps, then rows; the launch asks for what the tile needs
};

template <class AnyCall>
struct Job {
  AnyCall call;
  Tile tile;
  std::uint32_t prefetch = 0;  // bytes of the values per block of the first kPrefetchBlocks; 0: no prefetch
};

/// Brings the values into the L2 in one burst and asks it to keep them: while a call writes far more than it reads,
/// scattered reads disturb the stream of writes (256,100->2048,256: 74.3 us without, 69.8 with).
template <class AnyCall>
__device__ __forceinline__ void prefetch_values(const Job<AnyCall>& job, std::int64_t b) {
  if constexpr (std::is_same_v<AnyCall, PlainCall>) {
    const std::int64_t block = b * gridDim.x + blockIdx.x;
    if (job.prefetch == 0 || block >= kPrefetchBlocks || threadIdx.x != device::kWarpThreads) return;
    const unsigned char* from = job.call.values + block * job.prefetch;
    if (from < job.call.values_end)
      device::bulk_prefetch(
          from,
          static_cast<std::uint32_t>(min(static_cast<std::int64_t>(job.prefetch), job.call.values_end - from)),
          device::CacheHint::evict_last);
  }
}

template <class Time, class Value, class AnyCall, class Mapping>
__global__ void __launch_bounds__(kMaxThreads) kernel(const __grid_constant__ Job<AnyCall> job) {
  constexpr bool plain = std::is_same_v<AnyCall, PlainCall>;
  Storage& shared = device::dynamic_shared<Storage>();
  const AnyCall& call = job.call;
  const Tile& tile = job.tile;
  const std::int64_t b = block_trajectory(call);
  if (!plain && b >= batch_of(call)) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int begin = static_cast<int>(blockIdx.x) * tile.targets;
  if (!plain && begin >= of.targets) return;
  const int t = begin + Mapping::target_in_block(tile);
  const bool active = t < of.targets && (!Mapping::kLaneTargets || device::lane_index() < tile.targets_per_warp);
  Time q{};
  if (active) q = target_time<Time>(call, b, t);
  const int width = tile.chunks.count * 16;
  const RowBytes rows = row_bytes<Value>(call, b, width);
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  Slice stamps;
  if (plain || leader)
    stamps = stamp_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.stamp_capacity),
                         tile.stamp_bytes);
  if (leader) {
    load_slice(shared.bytes, stamps, shared.stamps_ready);
    const auto bytes = static_cast<std::uint32_t>(near.count * width);
    device::arrive_expect_bytes(shared.rows_ready, bytes);
    if (bytes > 0)
      device::bulk_load(shared.bytes + tile.rows_at, rows.values + static_cast<std::int64_t>(near.first) * width, bytes,
                        shared.rows_ready);
    if (!plain) shared.stamps = {stamps.held, stamps.shift};
  }
  if constexpr (Mapping::kPrefetch) prefetch_values(job, b);

  // Search.
  __syncthreads();  // barriers are initialised
  const Held held = plain ? Held{stamps.held, stamps.shift} : shared.stamps;
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    if (plain || of.samples > 0)
      at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + held.shift), held.range, q);
    if (Mapping::writes_mask(tile)) write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  Mapping::template combine<Value>(tile, Window{shared.bytes + tile.rows_at, near, rows, plain || of.samples > 0}, at, t, active);
}

/// Bytes per block of a burst prefetch where it pays: calls that write far more than they read, long enough, with a
/// source that fits well inside the L2. (It made 64,1024->4096,64 slower.)
std::uint32_t prefetch_bytes(const Problem& problem) {
  const std::int64_t row = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const std::int64_t source = problem.batch * problem.source * row;
  const std::int64_t output = problem.batch * problem.target * row;
  if (!problem.dense_batches || output < 16 * source || output < 128 << 20 || source > 16 << 20) return 0;
  return static_cast<std::uint32_t>((source + kPrefetchBlocks * 16 - 1) / (kPrefetchBlocks * 16) * 16);
}

void run(const Problem& problem, const Call& call, const TileChoice& choice, std::uint32_t prefetch,
         bool dependent_launch, Stream stream) {
  int shared_bytes = 0;
  const Tile tile = make_tile(problem, call, choice, shared_bytes);
  const LaunchConfig config{
      .grid = tile_grid((call.longest_target + tile.targets - 1) / tile.targets, problem.batch),
      .block = dim3(static_cast<unsigned>(choice.threads)),
      .shared_bytes = shared_bytes + static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)),
      .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    if (is_plain(problem, call))
      with_mapping<Time>(choice, [&](auto mapping) {
        // Walk keeps 16-bit values unpacked; for f32 it would spill.
        using Chosen = decltype(mapping);
        using Mapping = std::conditional_t<std::is_same_v<Chosen, Walk> && sizeof(Value) == 4, Dealt, Chosen>;
        launch_kernel<kernel<Time, Value, PlainCall, Mapping>>(
            "resample: bulk_window", config, stream, Job<PlainCall>{plain_call(problem, call), tile, prefetch});
      });
    else
      launch_kernel<kernel<Time, Value, Call, Dealt>>("resample: bulk_window", config, stream, Job<Call>{call, tile});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) { return supports_tiles(problem, device); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  run(problem, call, choose_tile(problem, call), prefetch_bytes(problem), arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::bulk_window
