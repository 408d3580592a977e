// Rows of any number of bytes: one thread per target. Windows of stamps and rows come by two bulk copies as in
// bulk_window, rounded outwards to 16 bytes; a thread reads its two neighbouring rows from shared memory and leaves the
// result in its warp's strip, which has the 16-byte phase of the output, so that the warp stores it in 16-byte units; a
// tile of whole units leaves in one bulk store (8,100000->50000,14 bf16 11.05 us instead of 11.28).
// Short trajectories are taken several at a time, with all their samples. (8,100000->50000,14 bf16: 11.3 us
// against 15.4 for 4-byte accesses straight to memory.)
#include "device/fence.cuh"
#include "ops/resample/cuda/narrow_plan.cuh"

namespace tmaops::ops::resample::narrow_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

struct Job {
  Call call;
  Cut cut;
};

/// Plain calls with f32 times. `known_bytes`: of a row, 0 when only the launch knows. `whole`: a block takes whole
/// trajectories. What one thread does before the copies is kept short.
template <class Value, int known_bytes, bool whole>
__global__ void __launch_bounds__(kMostNarrowThreads, resident_blocks(kMostNarrowThreads, known_bytes > 0 ? 8 : 4))
    plain_kernel(const __grid_constant__ NarrowJob job) {
  NarrowStorage& shared = device::dynamic_shared<NarrowStorage, kSite.smem>();
  const Cut& cut = job.cut;
  const auto thread = static_cast<int>(threadIdx.x);
  const int width = known_bytes > 0 ? known_bytes : cut.row_bytes;

  // Samples count from the first one of trajectory b.
  const int b = static_cast<int>(whole ? blockIdx.x * static_cast<unsigned>(cut.trajectories) : blockIdx.y);
  const int begin = whole ? 0 : static_cast<int>(blockIdx.x) * cut.tile;
  const int end =
      whole ? min(cut.trajectories, job.batch - b) * job.target_count : min(begin + cut.tile, job.target_count);
  const int place =
      whole ? 0
            : static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(begin)) * job.pace.ratio) >>
                               job.pace.shift);
  constexpr int begins = whole ? ~0 : ~1;  // tiles: at sectors of 32 bytes, which are what memory is read in
  const int zero = b * job.stamp_stride;
  const int stamp_unit =
      min(static_cast<int>(static_cast<unsigned>(zero + max(min(place - cut.time_margin, job.stamp_limit), 0)) / 4) &
              begins,
          job.stamp_unit_limit);
  const int first_row = max(min(place - cut.row_margin, job.row_limit), 0);
  const std::int64_t row_byte = b * job.value_stride + static_cast<std::int64_t>(first_row) * width;
  const int row_unit = min(static_cast<int>(row_byte >> 4) & begins, job.row_unit_limit);
  if (thread == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const int inside = whole ? static_cast<int>(__umulhi(threadIdx.x, cut.target_reciprocal)) : 0;
  const int t = begin + thread - inside * job.target_count;
  const bool active = begin + thread < end;
  float q{};
  if (active) q = device::load_now(reinterpret_cast<const float*>(job.targets) + (b + inside) * job.target_stride + t);
  if (thread == 0) {
    device::arrive_expect_bytes(shared.stamps_ready, static_cast<std::uint32_t>(cut.stamp_bytes));
    device::bulk_load(shared.bytes, job.stamps + static_cast<std::int64_t>(stamp_unit) * 16,
                      static_cast<std::uint32_t>(cut.stamp_bytes), shared.stamps_ready);
    device::arrive_expect_bytes(shared.rows_ready, static_cast<std::uint32_t>(cut.copied_row_bytes));
    device::bulk_load(shared.bytes + cut.rows_at, job.values + static_cast<std::int64_t>(row_unit) * 16,
                      static_cast<std::uint32_t>(cut.copied_row_bytes), shared.rows_ready);
  }

  // Search: one target per thread.
  __syncthreads();  // barriers are initialised
  const int base = inside * job.samples;
  const auto* times = reinterpret_cast<const float*>(job.stamps) + (zero + base);
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, 0.0f};
  if (active) {
    const int held = stamp_unit * 4 - (zero + base);  // the trajectory's sample that the window begins with
    const int from = max(held, 0);
    const int until = min(held + cut.stamp_bytes / 4, job.samples);
    const auto* window = reinterpret_cast<const float*>(shared.bytes) + (from - held);
    at = place_in(job.interpolation, find_interval(times, job.samples, window, Range{from, until - from}, q), q);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  const int first = begin + thread / device::kWarpThreads * device::kWarpThreads;
  unsigned char* output = job.output + b * job.output_stride + static_cast<std::int64_t>(first) * width;
  const int phase = cut.stores_tile ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
  unsigned char* strip = shared.bytes + cut.strips_at + thread / device::kWarpThreads * cut.strip_bytes;
  if (active) {
    const int row = base + at.row;
    const int offset =
        static_cast<int>(row_byte - static_cast<std::int64_t>(row_unit) * 16) + (row - first_row) * width;
    const bool here = offset >= 0 && offset + (at.weight != 0.0f ? 2 : 1) * width <= cut.copied_row_bytes;
    combine_target<Value, known_bytes>(
        cut, strip + phase + device::lane_index() * width, shared.bytes + cut.rows_at + offset, here,
        job.values + b * job.value_stride + static_cast<std::int64_t>(row) * width, at.weight);
  }
  if (cut.stores_tile) {
    device::fence_async_shared();
    __syncthreads();
    if (thread == 0) {  // its strip is the first one
      device::bulk_store(output, strip, static_cast<std::uint32_t>((end - begin) * width));
      device::commit_stores();
      device::wait_stores_read();
    }
    return;
  }
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(output, strip, phase, targets * width);
}

/// All other calls.
template <class Time, class Value>
__global__ void __launch_bounds__(kMostNarrowThreads, 2) kernel(const __grid_constant__ Job job) {
  NarrowStorage& shared = device::dynamic_shared<NarrowStorage, kSite.smem>();
  const Call& call = job.call;
  const Cut& cut = job.cut;
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
  const int begin = static_cast<int>(blockIdx.x) * cut.tile;
  const int end = min(begin + cut.tile, of.targets);
  if (begin >= end) return;
  const int t = begin + static_cast<int>(threadIdx.x);
  const bool active = t < end;
  Time q{};
  if (active) q = target_time<Time>(call, b, t);
  const int width = cut.row_bytes;
  const RowBytes rows = row_bytes<Value>(call, b, width);
  if (leader) {
    const Slice stamp_copy =
        stamp_slice(call, of, guess(of.pace, begin, of.samples, cut.time_margin, cut.stamp_capacity), cut.stamp_bytes);
    const Slice row_copy =
        row_slice(call, rows.values, width, guess(of.pace, begin, of.samples, cut.row_margin, cut.row_capacity),
                  cut.copied_row_bytes);
    load_slice(shared.bytes, stamp_copy, shared.stamps_ready);
    load_slice(shared.bytes + cut.rows_at, row_copy, shared.rows_ready);
    shared.stamps = {stamp_copy.held, stamp_copy.shift};
    shared.rows = {row_copy.held, row_copy.shift};
  }

  // Search: one target per thread.
  __syncthreads();  // barriers are initialised
  const Held stamps = shared.stamps;
  const Held window = shared.rows;
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    if (of.samples > 0)
      at = locate(call, of, reinterpret_cast<const Time*>(shared.bytes + stamps.shift), stamps.range, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  const int first = begin + device::warp_index() * device::kWarpThreads;
  unsigned char* warp_output = rows.output + static_cast<std::int64_t>(first) * width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(warp_output) & 15);
  unsigned char* strip = shared.bytes + cut.strips_at + device::warp_index() * cut.strip_bytes;
  const int row = at.row - window.range.first;
  if (active)
    combine_target<Value, 0>(cut, strip + phase + device::lane_index() * width,
                             shared.bytes + cut.rows_at + window.shift + row * width,
                             row >= 0 && row + (at.weight != 0.0f ? 1 : 0) < window.range.count,
                             rows.values + static_cast<std::int64_t>(at.row) * width, at.weight);
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(warp_output, strip, phase, targets * width);
}

/// What prepare() makes.
struct NarrowPrepared {
  std::shared_ptr<const void> call;
  LaunchConfig config{};
  enum class Kernel { none, pairs, plain, general } kernel = Kernel::none;
  int even_bytes = 0;  // shared memory for one_generation(), 0: not all blocks are resident at once
  int long_bytes = 0;  // shared memory for long_kernel, 0: not taken
  bool whole = false;
  int known_channels = 0;
  LongJob long_trajectories{};
  PairJob pairs{};
  NarrowJob plain{};
  Job job{};
};

void launch_plain(const Problem& problem, const NarrowPrepared& prepared, const LaunchConfig& config, Stream stream) {
  with_value_type(problem.values, [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    constexpr int size = static_cast<int>(sizeof(Value));
    const auto launch_with = [&](auto known_bytes) {
      constexpr int known = decltype(known_bytes)::value;
      if (prepared.whole)
        launch_kernel<plain_kernel<Value, known, true>>(kSite, config, stream, prepared.plain);
      else
        launch_kernel<plain_kernel<Value, known, false>>(kSite, config, stream, prepared.plain);
    };
    if (prepared.known_channels == 7) return launch_with(std::integral_constant<int, 7 * size>{});
    if (prepared.known_channels == 14) return launch_with(std::integral_constant<int, 14 * size>{});
    launch_with(std::integral_constant<int, 0>{});
  });
}

void launch_long(const Problem& problem, const NarrowPrepared& prepared, Stream stream) {
  LaunchConfig config;
  config.grid = tile_grid((problem.target + kLongTile - 1) / kLongTile, problem.batch);
  config.block = dim3(kLongThreads);
  config.shared_bytes = prepared.long_bytes;
  config.dependent = true;
  with_value_type(problem.values, [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<long_kernel<Value, kLongWords>>(kSite, config, stream, prepared.long_trajectories);
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_windows(problem); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  if (problem.channels * static_cast<std::int64_t>(size_of(problem.values)) > kLongestRow)
    return Support::no("needs rows of at most " + std::to_string(kLongestRow) + " bytes");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  auto prepared = std::make_shared<NarrowPrepared>();
  prepared->call = prepare_call(problem, arguments);
  const Call& call = static_cast<const Prepared*>(prepared->call.get())->call;
  if (call.longest_target == 0 || problem.batch == 0) return prepared;
  LaunchConfig& config = prepared->config;
  if (takes_pairs(problem, call)) {
    prepared->kernel = NarrowPrepared::Kernel::pairs;
    prepared->pairs = pair_job(problem, call, config.shared_bytes);
    const int each = prepared->pairs.trajectories;
    config.grid = dim3(static_cast<unsigned>((problem.batch + each - 1) / each));
    config.block = dim3(kPairThreads);
    prepared->even_bytes = one_generation(config.grid.x, kPairThreads, config.shared_bytes,
                                          static_cast<int>(sizeof(NarrowStorage)), device_info(problem.device));
    return prepared;
  }
  if (const auto job = long_job(problem, call, device_info(problem.device), prepared->long_bytes))
    prepared->long_trajectories = *job;
  const NarrowChoice choice = choose(problem, call);
  const Cut cut = make_cut(problem, call, choice, config.shared_bytes);
  config.block = dim3(static_cast<unsigned>(choice.threads));
  config.grid = cut.trajectories > 0
                    ? dim3(static_cast<unsigned>((problem.batch + cut.trajectories - 1) / cut.trajectories))
                    : tile_grid((call.longest_target + cut.tile - 1) / cut.tile, problem.batch);
  prepared->whole = cut.trajectories > 0;
  if (takes_plain(problem, call)) {
    prepared->kernel = NarrowPrepared::Kernel::plain;
    prepared->plain = plain_job(problem, call, cut);
    // Twelve blocks of a tile per multiprocessor: 8,100000->50000,14 in 11.04 us, 11.11 with as many as fit. These are
    // better where tiles have few rows: 8,50000->100000,14 in 12.7 us instead of 13.4.
    constexpr std::int64_t kTiles = 12 * 128;
    if (!prepared->whole && problem.target <= problem.source)
      config.shared_bytes = std::max(
          config.shared_bytes,
          one_generation(device_info(problem.device).multiprocessors * kTiles / choice.threads, choice.threads,
                         config.shared_bytes, static_cast<int>(sizeof(NarrowStorage)), device_info(problem.device)));
    // The joints of one arm with its gripper, and of two arms.
    const bool words = cut.row_bytes % 4 != 0 || cut.words;
    if (words && (problem.channels == 7 || problem.channels == 14))
      prepared->known_channels = static_cast<int>(problem.channels);
  } else {
    prepared->kernel = NarrowPrepared::Kernel::general;
    prepared->job = Job{call, cut};
  }
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const NarrowPrepared*>(arguments.prepared.get());
  if (prepared.kernel == NarrowPrepared::Kernel::none) return;
  LaunchConfig config = prepared.config;
  config.dependent = arguments.dependent_launch;
  const CurrentDevice current(problem.device.index);
  if (prepared.long_bytes > 0 && config.dependent) return launch_long(problem, prepared, stream);
  if (prepared.kernel == NarrowPrepared::Kernel::plain) return launch_plain(problem, prepared, config, stream);
  if (prepared.kernel == NarrowPrepared::Kernel::pairs) {
    PairJob job = prepared.pairs;
    job.ahead = config.dependent && prepared.even_bytes > 0;
    if (job.ahead) config.shared_bytes = prepared.even_bytes;
    if (problem.values == DType::f16)
      return launch_kernel<pair_kernel<__half, kPairChannels>>(kSite, config, stream, job);
    return launch_kernel<pair_kernel<__nv_bfloat16, kPairChannels>>(kSite, config, stream, job);
  }
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>(kSite, config, stream, prepared.job);
  });
}

}  // namespace tmaops::ops::resample::narrow_rows
