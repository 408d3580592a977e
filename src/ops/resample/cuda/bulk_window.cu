// One memory latency instead of two: the rows a tile of targets needs are guessed from its position, and the window of
// stamps and the window of rows are fetched at once by two bulk copies. The threads search the stamps while the rows
// arrive, then read the rows from shared memory. Rows and stamps outside the windows are read from global memory.
#include "ops/resample/cuda/plain_plan.cuh"
#include "ops/resample/cuda/tile_plan.cuh"

namespace tmaops::ops::resample::bulk_window {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 128;
constexpr int kMostSharedBytes = 96 * 1024;

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;                                         // general calls
  alignas(128) unsigned char bytes[kMostSharedBytes];  // the launch asks for what the tile needs
};

/// Plain calls.
template <class Time, class Value, class Mapping>
__global__ void __launch_bounds__(Mapping::kThreads, Mapping::kBlocks)
    plain_kernel(const __grid_constant__ PlainTile tile) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  if constexpr (Mapping::kEarly) device::let_next_kernel_start();
  const PlainBlock block = plain_block<Time>(tile);
  if (threadIdx.x == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1 + Mapping::arrivals(tile));
    device::fence_barrier_init();
  }
  if constexpr (Mapping::kPrefetch) fetch_ahead(tile);
  device::wait_for_previous_kernel();
  const int target = Mapping::first_target(tile);
  Time q{};
  if (target < block.targets) q = plain_target<Time>(tile, block, target);
  if (threadIdx.x == 0) {
    fetch_stamps(tile, block, shared.bytes, shared.stamps_ready);
    fetch_rows(tile, block, {block.first_row, tile.row_capacity}, shared.bytes, shared.rows_ready);
  }
  if constexpr (Mapping::kPrefetch)
    if (threadIdx.x == device::kWarpThreads) fetch_share(tile.burst, device::CacheHint::evict_last);
  __syncthreads();  // barriers are initialised
  Mapping::template run<Value>(PlainWork<Time>{tile, block, shared.bytes, q, shared.stamps_ready, shared.rows_ready});
}

struct Job {
  Call call;
  Tile tile;
};

/// All other calls.
template <class Time, class Value>
__global__ void __launch_bounds__(kMaxThreads) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  const Tile& tile = job.tile;
  const std::int64_t b = block_trajectory(call);
  if (b >= batch_of(call)) return;
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
  if (begin >= of.targets) return;
  const int t = begin + Dealt::target_in_block(tile);
  const bool active = t < of.targets && device::lane_index() < tile.targets_per_warp;
  Time q{};
  if (active) q = target_time<Time>(call, b, t);
  const int width = tile.chunks.count * 16;
  const RowBytes rows = row_bytes<Value>(call, b, width);
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  if (leader) {
    const Slice stamps = stamp_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.stamp_capacity),
                                     tile.stamp_bytes);
    load_slice(shared.bytes, stamps, shared.stamps_ready);
    const auto bytes = static_cast<std::uint32_t>(near.count * width);
    device::arrive_expect_bytes(shared.rows_ready, bytes);
    if (bytes > 0)
      device::bulk_load(shared.bytes + tile.rows_at, rows.values + static_cast<std::int64_t>(near.first) * width, bytes,
                        shared.rows_ready);
    shared.stamps = {stamps.held, stamps.shift};
  }

  // Search.
  __syncthreads();  // barriers are initialised
  const Held held = shared.stamps;
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    if (of.samples > 0) at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + held.shift), held.range, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  Dealt::combine<Value>(tile, Window{shared.bytes + tile.rows_at, near, rows, of.samples > 0}, at, t, active);
}

/// Calls fn(mapping) with the mapping's type.
template <class Time, class Value, class Fn>
void with_mapping(const PlainChoice& choice, const Fn& fn) {
  using Mapping = PlainChoice::Mapping;
  if constexpr (std::is_same_v<Time, float>) {
    if (choice.mapping == Mapping::own)
      return choice.chunks == 1 ? fn(Own<1, true>{}) : (choice.chunks == 2 ? fn(Own<2, true>{}) : fn(Own<4, true>{}));
    if (choice.mapping == Mapping::staged) return fn(Together<true>{});
    if constexpr (sizeof(Value) == 2)  // f32 would spill
      if (choice.mapping == Mapping::walk) return fn(Walk{});
  }
  if (choice.mapping == Mapping::apart) return fn(Apart{});
  fn(Together<false>{});
}

void run_plain(const Problem& problem, const Call& call, const PlainChoice& choice, bool dependent_launch,
               Stream stream) {
  constexpr auto head = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes));
  int shared_bytes = 0;
  const PlainTile tile = make_plain_tile(problem, call, choice, true, shared_bytes);
  const LaunchConfig config{.grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
                            .block = dim3(static_cast<unsigned>(choice.threads)),
                            .shared_bytes = head + shared_bytes,
                            .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    with_mapping<Time, Value>(choice, [&](auto mapping) {
      launch_kernel<plain_kernel<Time, Value, decltype(mapping)>>(kSite, config, stream, tile);
    });
  });
}

void run(const Problem& problem, const Call& call, const TileChoice& choice, bool dependent_launch, Stream stream) {
  int shared_bytes = 0;
  const Tile tile = make_tile(problem, call, choice, shared_bytes);
  const LaunchConfig config{.grid = tile_grid((call.longest_target + tile.targets - 1) / tile.targets, problem.batch),
                            .block = dim3(static_cast<unsigned>(choice.threads)),
                            .shared_bytes = shared_bytes + static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)),
                            .dependent = dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>(kSite, config, stream, Job{call, tile});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_tiles(problem); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  if (takes_plain_tiles(problem, call))
    run_plain(problem, call, choose_window(problem), arguments.dependent_launch, stream);
  else
    run(problem, call, choose_tile(problem, call), arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::bulk_window
