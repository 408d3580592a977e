// Rows of any number of bytes: one thread per target. Windows of stamps and rows come by two bulk copies as in
// bulk_window, rounded outwards to 16 bytes; a thread reads its two neighbouring rows from shared memory and leaves the
// result in its warp's strip, which has the 16-byte phase of the output, so that the warp stores it in 16-byte units.
// Short trajectories are taken several at a time, with all their samples. (8,100000->50000,14 bf16: 11.3 us
// against 15.4 for 4-byte accesses straight to memory.)
#include <cmath>

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/values.cuh"

namespace tmaops::ops::resample::narrow_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 416;
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

template <class AnyCall>
struct Job {
  AnyCall call;
  int row_bytes;
  bool words;                        // rows are multiples of 4 bytes at multiples of 4 bytes
  int tile;                          // targets per block
  int trajectories;                  // whole trajectories per block; 0: a tile of one
  int time_margin, row_margin;       // samples
  int stamp_capacity, row_capacity;  // samples
  int most_stamp_bytes, most_row_bytes;
  int rows_at, strips_at, strip_bytes;
};

/// One row made of two, in words of 4 bytes or in single values; several loads are under way before the first is used.
template <class Value, class Word, class Load>
__device__ __forceinline__ void combine_row(unsigned char* to, int row_bytes, float weight, const Load& load) {
  constexpr int kFlight = 4;
  constexpr int size = static_cast<int>(sizeof(Word));
  const int second = weight == 0.0f ? 0 : row_bytes;  // there may be no second row
  for (int base = 0; base < row_bytes; base += kFlight * size) {
    Word a[kFlight];
    Word b[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const int at = base + k * size;
      if (at < row_bytes) {
        a[k] = load(at, Word{});
        b[k] = load(at + second, Word{});
      }
    }
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      const int at = base + k * size;
      if (at >= row_bytes) continue;
      if constexpr (std::is_same_v<Word, std::uint32_t>)
        *reinterpret_cast<Word*>(to + at) = device::select(weight == 0.0f, a[k], mix_word<Value>(a[k], b[k], weight));
      else
        *reinterpret_cast<Word*>(to + at) = mix(a[k], b[k], weight);
    }
  }
}

/// The same for two rows next to one another in shared memory, of a width known to the compiler: whole words whatever
/// the address of a row of 2-byte values is. `two`: whether the second row is there.
template <class Value, int row_bytes>
__device__ __forceinline__ void combine_known(unsigned char* to, const unsigned char* from, float weight, bool two) {
  constexpr int words = (2 * row_bytes + 2) / 4 + (row_bytes % 4 ? 1 : 0);
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto* word = reinterpret_cast<const std::uint32_t*>(from - (address & 3));
  std::uint32_t got[words];
#pragma unroll
  for (int k = 0; k < words; ++k) got[k] = word[k];
  if constexpr (row_bytes % 4 != 0) {
    const auto shift = static_cast<unsigned>(address & 2) * 8;
#pragma unroll
    for (int k = 0; k + 1 < words; ++k) got[k] = __funnelshift_r(got[k], got[k + 1], shift);
  }
  if constexpr (sizeof(Value) == 4) {
#pragma unroll
    for (int k = 0; k < row_bytes / 4; ++k)
      *reinterpret_cast<std::uint32_t*>(to + 4 * k) =
          device::select(!two, got[k], mix_word<Value>(got[k], got[k + row_bytes / 4], weight));
  } else if constexpr (row_bytes % 4 == 0) {
#pragma unroll
    for (int k = 0; k < row_bytes / 4; ++k)
      *reinterpret_cast<std::uint32_t*>(to + 4 * k) =
          device::select(!two, got[k], mix_word<Value>(got[k], got[k + row_bytes / 4], weight));
  } else {  // an odd number of values: the second row starts in the upper half of a word
#pragma unroll
    for (int k = 0; k < (row_bytes + 2) / 4; ++k) {
      constexpr int half = row_bytes / 4;
      const std::uint32_t b = __funnelshift_r(got[half + k], k + half + 1 < words ? got[half + k + 1] : 0u, 16);
      const std::uint32_t mixed = device::select(!two, got[k], mix_word<Value>(got[k], b, weight));
      *reinterpret_cast<std::uint16_t*>(to + 4 * k) = static_cast<std::uint16_t>(mixed);
      if (4 * k + 2 < row_bytes) *reinterpret_cast<std::uint16_t*>(to + 4 * k + 2) = static_cast<std::uint16_t>(mixed >> 16);
    }
  }
}

/// `known_bytes`: of a row, 0 when only the launch knows. `whole`: a block takes whole trajectories.
template <class Time, class Value, class AnyCall, int known_bytes, bool whole>
__global__ void __launch_bounds__(kMaxThreads, 2) kernel(const __grid_constant__ Job<AnyCall> job) {
  constexpr bool plain = std::is_same_v<AnyCall, PlainCall>;
  Storage& shared = device::dynamic_shared<Storage>();
  const AnyCall& call = job.call;
  const int width = known_bytes > 0 ? known_bytes : job.row_bytes;
  const std::int64_t b0 = whole ? static_cast<std::int64_t>(blockIdx.x) * job.trajectories : block_trajectory(call);
  if (!plain && b0 >= batch_of(call)) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch. Samples count from the first one of trajectory b0.
  Trajectory<Time> of = trajectory<Time>(call, b0);
  const int held_trajectories =
      whole ? static_cast<int>(min(static_cast<std::int64_t>(job.trajectories), batch_of(call) - b0)) : 1;
  const int begin = whole ? 0 : static_cast<int>(blockIdx.x) * job.tile;
  const int end = whole ? held_trajectories * of.targets : min(begin + job.tile, of.targets);
  if (!plain && begin >= end) return;
  const int target = begin + static_cast<int>(threadIdx.x);
  const int inside = whole ? target / of.targets : 0;  // number of the trajectory in the block
  const int base = inside * of.samples;
  const int t = target - inside * of.targets;
  const bool active = target < end;
  Time q{};
  if (active) q = target_time<Time>(call, b0 + inside, t);
  const RowBytes rows = row_bytes<Value>(call, b0, width);
  Slice stamp_copy;
  Slice row_copy;
  if (plain || leader) {
    const Range all{0, held_trajectories * of.samples};
    stamp_copy = stamp_slice(
        call, of, whole ? all : guess(of.pace, begin, of.samples, job.time_margin, job.stamp_capacity),
        whole ? round_up(all.count * static_cast<int>(sizeof(Time)) + 15, 16) : job.most_stamp_bytes);
    row_copy = row_slice(call, rows.values, width,
                         whole ? all : guess(of.pace, begin, of.samples, job.row_margin, job.row_capacity),
                         whole ? round_up(all.count * width + 15, 16) : job.most_row_bytes);
  }
  if (leader) {
    load_slice(shared.bytes, stamp_copy, shared.stamps_ready);
    load_slice(shared.bytes + job.rows_at, row_copy, shared.rows_ready);
    if (!plain) {
      shared.stamps = {stamp_copy.held, stamp_copy.shift};
      shared.rows = {row_copy.held, row_copy.shift};
    }
  }

  // Search: one target per thread.
  of.b += inside;
  of.stamps += base;
  __syncthreads();  // barriers are initialised
  const Held stamps = plain ? Held{stamp_copy.held, stamp_copy.shift} : shared.stamps;
  const Held window = plain ? Held{row_copy.held, row_copy.shift} : shared.rows;
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    Range range = stamps.range;
    const auto* held = reinterpret_cast<const Time*>(shared.bytes + stamps.shift);
    if (whole) {  // the part of this trajectory
      range.first = max(stamps.range.first - base, 0);
      range.count = min(stamps.range.first + stamps.range.count - base, of.samples) - range.first;
      held += base + range.first - stamps.range.first;
    }
    if (plain || of.samples > 0) at = locate(call, of, held, range, q);
    write_valid(call, of.b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  const int first = begin + device::warp_index() * device::kWarpThreads;
  unsigned char* warp_output = rows.output + static_cast<std::int64_t>(first) * width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(warp_output) & 15);
  unsigned char* strip = shared.bytes + job.strips_at + device::warp_index() * job.strip_bytes;
  if (active) {
    unsigned char* to = strip + phase + device::lane_index() * width;
    const bool two = at.weight != 0.0f;  // a target that is missing too
    const int row = base + at.row - window.range.first;
    const bool here = row >= 0 && row + (two ? 1 : 0) < window.range.count;
    const unsigned char* from = shared.bytes + job.rows_at + window.shift + row * width;
    const auto combine = [&](const auto& load) {
      if (job.words)
        combine_row<Value, std::uint32_t>(to, width, at.weight, load);
      else
        combine_row<Value, Value>(to, width, at.weight, load);
    };
    bool done = false;
    if constexpr (known_bytes > 0) {
      if (here) combine_known<Value, known_bytes>(to, from, at.weight, two);
      done = here;
    }
    if (done) {
    } else if (at.weight != at.weight) {  // there may be no row at all
      for (int byte = 0; byte < width; byte += static_cast<int>(sizeof(Value)))
        *reinterpret_cast<Value*>(to + byte) = narrow<Value>(missing());
    } else if (here) {
      combine([&](int byte, auto type) { return *reinterpret_cast<const decltype(type)*>(from + byte); });
    } else {
      const unsigned char* memory = rows.values + static_cast<std::int64_t>(base + at.row) * width;
      combine([&](int byte, auto type) { return __ldg(reinterpret_cast<const decltype(type)*>(memory + byte)); });
    }
  }
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(warp_output, strip, phase, targets * width);
}

/// How a problem is cut: threads per block, each with one target, and whole trajectories per block (0: none).
struct Choice {
  int threads = 256;
  int trajectories = 0;
  int time_margin = 0;
  int row_margin = 8;
};

Choice choose(const Problem& problem, const Call& call) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Choice choice;
  // Whole trajectories while they are short: 4096,100->50,7 with 8 trajectories 4.5 us, 4 trajectories 4.9.
  constexpr std::int64_t kWholeBytes = 32 * 1024;
  const bool separate = is_plain(problem, call) && problem.dense_batches && !problem.shared_source_times;
  if (separate && problem.target > 0 && problem.target <= kMaxThreads / 2) {
    const std::int64_t one = std::max<std::int64_t>(problem.source * (row_bytes + time_bytes), 1);
    const std::int64_t fit = std::min({kWholeBytes / one, kMaxThreads / problem.target, problem.batch});
    choice.trajectories = fit >= 2 ? static_cast<int>(fit) : 0;
  }
  if (choice.trajectories > 0) {
    choice.threads = round_up(choice.trajectories * static_cast<int>(problem.target), device::kWarpThreads);
  } else {
    choice.threads = row_bytes <= 32 ? 256 : 128;
    // A third: rows of few bytes make stamps dear (8,100000->50000,14: 12.7 us against 14.3).
    choice.time_margin = 4 + time_margin(problem.longest_source, call.longest_target) / 3;
    choice.row_margin = std::min(choice.time_margin, 32);
  }
  return choice;
}

template <class AnyCall>
Job<AnyCall> make_job(const Problem& problem, const Call& call, const AnyCall& any, const Choice& choice,
                      int& shared_bytes) {
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  Job<AnyCall> job{};
  job.call = any;
  job.row_bytes = static_cast<int>(row_bytes);
  job.words = problem.row_alignment >= 4 && row_bytes % 4 == 0;
  job.trajectories = choice.trajectories;
  if (choice.trajectories > 0) {
    job.tile = choice.trajectories * static_cast<int>(problem.target);
    job.stamp_capacity = job.row_capacity = choice.trajectories * static_cast<int>(problem.source);
  } else {
    job.tile = choice.threads;
    job.time_margin = choice.time_margin;
    job.row_margin = choice.row_margin;
    job.stamp_capacity = window_capacity(problem, call.longest_target, job.tile, job.time_margin,
                                         kMostStampBytes / time_bytes);
    job.row_capacity = window_capacity(problem, call.longest_target, job.tile, job.row_margin, kMostRowBytes / row_bytes);
  }
  job.most_stamp_bytes = slice_bytes(job.stamp_capacity, time_bytes);
  job.most_row_bytes = slice_bytes(job.row_capacity, row_bytes);
  job.rows_at = round_up(job.most_stamp_bytes, 128);
  job.strips_at = job.rows_at + round_up(job.most_row_bytes + 16, 128);  // combine_known reads a word too many
  job.strip_bytes = device::kWarpThreads * job.row_bytes + 16;
  shared_bytes = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)) + job.strips_at +
                 choice.threads / device::kWarpThreads * job.strip_bytes;
  return job;
}

void run(const Problem& problem, const Call& call, const Choice& choice, bool dependent_launch, Stream stream) {
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    with_call(problem, call, [&](const auto& any) {
      using AnyCall = std::remove_cvref_t<decltype(any)>;
      LaunchConfig config{.block = dim3(static_cast<unsigned>(choice.threads)), .dependent = dependent_launch};
      const Job<AnyCall> job = make_job(problem, call, any, choice, config.shared_bytes);
      config.grid = job.trajectories > 0
                        ? dim3(static_cast<unsigned>((problem.batch + job.trajectories - 1) / job.trajectories))
                        : tile_grid((call.longest_target + job.tile - 1) / job.tile, problem.batch);
      const auto launch_with = [&](auto known_bytes, auto whole) {
        launch_kernel<kernel<Time, Value, AnyCall, decltype(known_bytes)::value, decltype(whole)::value>>(
            "resample: narrow_rows", config, stream, job);
      };
      constexpr std::integral_constant<int, 0> any_bytes{};
      if constexpr (std::is_same_v<AnyCall, PlainCall>) {
        const auto launch_tiled = [&](auto known_bytes) {
          if (job.trajectories > 0)
            launch_with(known_bytes, std::true_type{});
          else
            launch_with(known_bytes, std::false_type{});
        };
        // The joints of one arm with its gripper, and of two arms; f32 times, which most calls have.
        if constexpr (std::is_same_v<Time, float>) {
          constexpr int size = static_cast<int>(sizeof(Value));
          const bool words = job.row_bytes % 4 != 0 || job.words;
          if (words && problem.channels == 7) return launch_tiled(std::integral_constant<int, 7 * size>{});
          if (words && problem.channels == 14) return launch_tiled(std::integral_constant<int, 14 * size>{});
        }
        launch_tiled(any_bytes);
      } else {
        launch_with(any_bytes, std::false_type{});
      }
    });
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
