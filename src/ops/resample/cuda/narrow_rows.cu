// Rows of any number of bytes: one thread per target. Windows of stamps and rows come by two bulk copies as in
// bulk_window, rounded outwards to 16 bytes; a thread reads its two neighbouring rows from shared memory and leaves the
// result in its warp's strip, which has the 16-byte phase of the output, so that the warp stores it in 16-byte units.
// Short trajectories are taken several at a time, with all their samples. (8,100000->50000,14 bf16: 11.3 us
// against 15.4 for 4-byte accesses straight to memory.)
#include <bit>
#include <cstdlib>

#include "device/warp.cuh"
#include "ops/resample/cuda/narrow_row.cuh"
#include "ops/resample/cuda/plain_tile.cuh"
#include "ops/resample/cuda/slice.cuh"

namespace tmaops::ops::resample::narrow_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 256;
constexpr int kLongestRow = 128;  // bytes
constexpr int kMostStampBytes = 16 * 1024;
constexpr int kMostRowBytes = 48 * 1024;

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;
  Held rows;
  alignas(128) unsigned char bytes[96 * 1024];  // stamps, rows, strips; the launch asks for what the tile needs
};

constexpr int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// A plain call, as in plain_tile.cuh.
struct PlainJob {
  const unsigned char* stamps;
  const unsigned char* targets;
  const unsigned char* values;
  unsigned char* output;
  std::int64_t value_stride, output_stride;  // bytes from one trajectory to the next
  int stamp_stride, target_stride;           // elements
  int samples;
  int target_count;
  int batch;
  Pace pace;
  int stamp_limit, row_limit;            // the last sample that a window may begin with
  int stamp_unit_limit, row_unit_limit;  // the same in units of 16 bytes of the whole tensor
  Interpolation interpolation;
  Cut cut;
};

struct Job {
  Call call;
  Cut cut;
};

/// Plain calls with f32 times. `known_bytes`: of a row, 0 when only the launch knows. `whole`: a block takes whole
/// trajectories. What one thread does before the copies is kept short.
template <class Value, int known_bytes, bool whole>
__global__ void __launch_bounds__(kMaxThreads, resident_blocks(kMaxThreads, known_bytes > 0 ? 8 : 4))
    plain_kernel(const __grid_constant__ PlainJob job) {
  Storage& shared = device::dynamic_shared<Storage>();
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
  const int zero = b * job.stamp_stride;
  const int stamp_unit =
      min(static_cast<int>(static_cast<unsigned>(zero + max(min(place - cut.time_margin, job.stamp_limit), 0)) / 4),
          job.stamp_unit_limit);
  const int first_row = max(min(place - cut.row_margin, job.row_limit), 0);
  const std::int64_t row_byte = b * job.value_stride + static_cast<std::int64_t>(first_row) * width;
  const int row_unit = min(static_cast<int>(row_byte >> 4), job.row_unit_limit);
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
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
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
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(output, strip, phase, targets * width);
}

/// All other calls.
template <class Time, class Value>
__global__ void __launch_bounds__(kMaxThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage>();
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

/// Threads per block, each with one target, and whole trajectories per block (0: none).
struct Choice {
  int threads = 256;
  int trajectories = 0;
  int time_margin = 0;
  int row_margin = 8;
};

/// Offsets of times are in 32 bits, those of values in units of 16 bytes.
bool takes_plain(const Problem& problem, const Call& call) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto within = [&](std::int64_t stride) { return std::abs(stride) * problem.batch < most; };
  return is_plain(problem, call) && problem.times == DType::f32 && problem.source >= 4 &&
         within(call.line.source.trajectory_stride) && within(call.line.target.trajectory_stride) &&
         call.values_end - call.values_begin < most * 16 && call.values_end - call.values_begin >= 16 &&
         call.times_end - call.times_begin >= 64;
}

PlainJob plain_job(const Problem& problem, const Call& call, const Cut& cut) {
  const PlainCall plain = plain_call(problem, call);
  PlainJob job{};
  job.stamps = plain.stamps;
  job.targets = plain.targets;
  job.values = plain.values;
  job.output = plain.output;
  job.value_stride = plain.value_stride;
  job.output_stride = plain.output_stride;
  job.stamp_stride = static_cast<int>(plain.stamp_stride / 4);
  job.target_stride = static_cast<int>(plain.target_stride / 4);
  job.samples = plain.samples;
  job.target_count = plain.target_count;
  job.batch = plain.batch;
  job.pace = plain.pace;
  job.interpolation = plain.interpolation;
  job.cut = cut;
  const std::int64_t stamps = plain.stamps_end - plain.stamps;
  const std::int64_t values = plain.values_end - plain.values;
  job.cut.stamp_bytes = static_cast<int>(std::min<std::int64_t>(cut.stamp_bytes, stamps));
  job.cut.copied_row_bytes = static_cast<int>(std::min<std::int64_t>(cut.copied_row_bytes, values));
  job.stamp_limit = cut.trajectories > 0 ? 0 : plain.samples - cut.stamp_capacity;
  job.row_limit = cut.trajectories > 0 ? 0 : plain.samples - cut.row_capacity;
  job.stamp_unit_limit = static_cast<int>((stamps - job.cut.stamp_bytes) / 16);
  job.row_unit_limit = static_cast<int>((values - job.cut.copied_row_bytes) / 16);
  return job;
}

Choice choose(const Problem& problem, const Call& call) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Choice choice;
  // Whole trajectories while they are short, a power of two of them so that warps store whole units of 16 bytes
  // (4096,100->50,7: 2, 4, 6, 8 trajectories 5.15, 4.70, 5.6, 4.88 us).
  constexpr std::int64_t kWholeBytes = 32 * 1024;
  constexpr std::int64_t kWholeThreads = 256;
  const bool separate = takes_plain(problem, call) && problem.dense_batches && !problem.shared_source_times;
  if (separate && problem.target > 1 && problem.target <= kWholeThreads / 2) {
    const std::int64_t one = std::max<std::int64_t>(problem.source * (row_bytes + time_bytes), 1);
    const std::int64_t fit = std::min({kWholeBytes / one, kWholeThreads / problem.target, problem.batch});
    choice.trajectories = fit >= 2 ? static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(fit))) : 0;
  }
  if (choice.trajectories > 0) {
    choice.threads = round_up(choice.trajectories * static_cast<int>(problem.target), device::kWarpThreads);
  } else {
    choice.threads = 192;
    // A sixteenth: rows of few bytes make stamps dear (8,100000->50000,14, even stamps: margins of 32, 276, 817 samples
    // 11.4, 11.8, 12.2 us).
    choice.time_margin = 4 + time_margin(problem.longest_source, call.longest_target) / 16;
    choice.row_margin = std::min(choice.time_margin, 32);
  }
  return choice;
}

Cut make_cut(const Problem& problem, const Call& call, const Choice& choice, int& shared_bytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Cut cut{};
  cut.row_bytes = static_cast<int>(row_bytes);
  cut.words = problem.row_alignment >= 4 && row_bytes % 4 == 0;
  cut.trajectories = choice.trajectories;
  if (choice.trajectories > 0) {
    cut.tile = choice.trajectories * static_cast<int>(problem.target);
    const auto targets = static_cast<std::uint64_t>(problem.target);
    cut.target_reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + targets - 1) / targets);
    cut.stamp_capacity = cut.row_capacity = choice.trajectories * static_cast<int>(problem.source);
  } else {
    cut.tile = choice.threads;
    cut.time_margin = choice.time_margin;
    cut.row_margin = choice.row_margin;
    cut.stamp_capacity =
        window_capacity(problem, call.longest_target, cut.tile, cut.time_margin, kMostStampBytes / time_bytes);
    cut.row_capacity =
        window_capacity(problem, call.longest_target, cut.tile, cut.row_margin, kMostRowBytes / row_bytes);
  }
  cut.stamp_bytes = slice_bytes(cut.stamp_capacity, time_bytes);
  cut.copied_row_bytes = slice_bytes(cut.row_capacity, row_bytes);
  cut.rows_at = round_up(cut.stamp_bytes, 128);
  cut.strips_at = cut.rows_at + round_up(cut.copied_row_bytes + 16, 128);  // combine_known reads a word too many
  cut.strip_bytes = device::kWarpThreads * cut.row_bytes + 16;
  shared_bytes = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)) + cut.strips_at +
                 choice.threads / device::kWarpThreads * cut.strip_bytes;
  return cut;
}

void run(const Problem& problem, const Call& call, const Choice& choice, bool dependent_launch, Stream stream) {
  LaunchConfig config{.block = dim3(static_cast<unsigned>(choice.threads)), .dependent = dependent_launch};
  const Cut cut = make_cut(problem, call, choice, config.shared_bytes);
  config.grid = cut.trajectories > 0
                    ? dim3(static_cast<unsigned>((problem.batch + cut.trajectories - 1) / cut.trajectories))
                    : tile_grid((call.longest_target + cut.tile - 1) / cut.tile, problem.batch);
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<Time, float>) {
      if (takes_plain(problem, call)) {
        const PlainJob job = plain_job(problem, call, cut);
        const auto launch_with = [&](auto known_bytes) {
          constexpr int known = decltype(known_bytes)::value;
          if (cut.trajectories > 0)
            launch_kernel<plain_kernel<Value, known, true>>("resample: narrow_rows", config, stream, job);
          else
            launch_kernel<plain_kernel<Value, known, false>>("resample: narrow_rows", config, stream, job);
        };
        // The joints of one arm with its gripper, and of two arms.
        constexpr int size = static_cast<int>(sizeof(Value));
        const bool words = cut.row_bytes % 4 != 0 || cut.words;
        if (words && problem.channels == 7) return launch_with(std::integral_constant<int, 7 * size>{});
        if (words && problem.channels == 14) return launch_with(std::integral_constant<int, 14 * size>{});
        return launch_with(std::integral_constant<int, 0>{});
      }
    }
    launch_kernel<kernel<Time, Value>>("resample: narrow_rows", config, stream, Job{call, cut});
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_windows(problem, device); !support) return support;
  if (!problem.dense_rows) return Support::no("needs rows that follow one another without gaps");
  if (problem.channels * static_cast<std::int64_t>(size_of(problem.values)) > kLongestRow)
    return Support::no("needs rows of at most " + std::to_string(kLongestRow) + " bytes");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.longest_target == 0 || problem.batch == 0) return;
  const CurrentDevice current(problem.device.index);
  run(problem, call, choose(problem, call), arguments.dependent_launch, stream);
}

}  // namespace tmaops::ops::resample::narrow_rows
