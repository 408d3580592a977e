// Rows of any number of bytes: one thread per target. Windows of stamps and rows come by two bulk copies as in
// bulk_window, rounded outwards to 16 bytes; a thread reads its two neighbouring rows from shared memory and leaves the
// result in its warp's strip, which has the 16-byte phase of the output, so that the warp stores it in 16-byte units.
// Short trajectories are taken several at a time, with all their samples. (8,100000->50000,14 bf16: 11.3 us
// against 15.4 for 4-byte accesses straight to memory.)
#include <cmath>

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/resample/cuda/slice.cuh"
#include "ops/resample/cuda/values.cuh"
#include "ops/resample/cuda/window.cuh"

namespace tmaops::ops::resample::narrow_rows {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kMaxThreads = 416;
constexpr int kLongestRow = 128;  // bytes

struct Storage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  Held stamps;
  Held rows;
  alignas(128) unsigned char bytes[96 * 1024];  // stamps, rows, strips; the launch asks for what the tile needs
};

struct Job {
  Call call;
  int row_bytes;
  bool words;                        // rows are multiples of 4 bytes at multiples of 4 bytes
  int tile;                          // targets per block
  int trajectories;                  // whole trajectories per block; 0: a tile of one
  int time_margin, row_margin;       // samples
  int stamp_capacity, row_capacity;  // samples
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

/// Copies bytes [phase, phase + count) of a strip to global memory whose first byte has the same phase modulo 16.
template <class Value>
__device__ __forceinline__ void store_strip(unsigned char* to, const unsigned char* strip, int phase, int count) {
  const int end = phase + count;
  for (int at = device::lane_index() * 16; at < end; at += device::kWarpThreads * 16) {
    if (at >= phase && at + 16 <= end) {
      device::store_16_streaming(to + (at - phase), *reinterpret_cast<const uint4*>(strip + at));
    } else {
      for (int byte = max(at, phase); byte < min(at + 16, end); byte += static_cast<int>(sizeof(Value)))
        *reinterpret_cast<Value*>(to + (byte - phase)) = *reinterpret_cast<const Value*>(strip + byte);
    }
  }
}

template <class Time, class Value>
__global__ void __launch_bounds__(kMaxThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage>();
  device::let_next_kernel_start();
  const Call& call = job.call;
  const bool whole = job.trajectories > 0;
  const std::int64_t b0 = whole ? static_cast<std::int64_t>(blockIdx.x) * job.trajectories : block_trajectory();
  if (b0 >= call.line.batch) return;
  if (threadIdx.x == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Fetch. Samples count from the first one of trajectory b0.
  Trajectory<Time> of = trajectory<Time>(call, b0);
  const int held_trajectories =
      whole ? static_cast<int>(min(static_cast<std::int64_t>(job.trajectories), call.line.batch - b0)) : 1;
  const int begin = whole ? 0 : static_cast<int>(blockIdx.x) * job.tile;
  const int end = whole ? held_trajectories * of.targets : min(begin + job.tile, of.targets);
  if (begin >= end) return;
  const Range all{0, held_trajectories * of.samples};
  const auto* values = static_cast<const unsigned char*>(call.values.data) +
                       call.values.first(b0) * static_cast<std::int64_t>(sizeof(Value));
  if (threadIdx.x == 0) {
    const Range near =
        whole ? all : guess(begin, end, of.samples, of.samples_per_target, job.time_margin, job.stamp_capacity);
    shared.stamps = load_slice(shared.bytes, reinterpret_cast<const unsigned char*>(of.stamps), sizeof(Time), near,
                               call.times_begin, call.times_end, shared.stamps_ready);
    const Range window =
        whole ? all : guess(begin, end, of.samples, of.samples_per_target, job.row_margin, job.row_capacity);
    shared.rows = load_slice(shared.bytes + job.rows_at, values, job.row_bytes, window, call.values_begin,
                             call.values_end, shared.rows_ready);
  }

  // Search: one target per thread.
  const int target = begin + static_cast<int>(threadIdx.x);
  const int inside = whole ? target / of.targets : 0;  // number of the trajectory in the block
  const int base = inside * of.samples;
  const int t = target - inside * of.targets;
  const bool active = target < end;
  of.b += inside;
  of.stamps += base;
  Time q{};
  if (active) q = target_time<Time>(call.line, of.b, t);
  __syncthreads();  // barriers are initialised, and known is what the copies hold
  device::wait(shared.stamps_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    const Held all_stamps = shared.stamps;
    Range range;
    range.first = max(all_stamps.range.first - base, 0);
    range.count = min(all_stamps.range.first + all_stamps.range.count - base, of.samples) - range.first;
    const Time* held =
        reinterpret_cast<const Time*>(shared.bytes + all_stamps.shift) + (base + range.first - all_stamps.range.first);
    if (of.samples > 0) at = locate(call, of, held, range, q);
    write_valid(call, of.b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  auto* output = static_cast<unsigned char*>(const_cast<void*>(call.output.data)) +
                 call.output.first(b0) * static_cast<std::int64_t>(sizeof(Value));
  const int first = begin + device::warp_index() * device::kWarpThreads;
  unsigned char* warp_output = output + static_cast<std::int64_t>(first) * job.row_bytes;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(warp_output) & 15);
  unsigned char* strip = shared.bytes + job.strips_at + device::warp_index() * job.strip_bytes;
  if (active) {
    unsigned char* to = strip + phase + device::lane_index() * job.row_bytes;
    const Held window = shared.rows;
    const int row = base + at.row - window.range.first;
    const auto combine = [&](const auto& load) {
      if (job.words)
        combine_row<Value, std::uint32_t>(to, job.row_bytes, at.weight, load);
      else
        combine_row<Value, Value>(to, job.row_bytes, at.weight, load);
    };
    if (at.weight != at.weight) {  // there may be no row at all
      for (int byte = 0; byte < job.row_bytes; byte += static_cast<int>(sizeof(Value)))
        *reinterpret_cast<Value*>(to + byte) = narrow<Value>(missing());
    } else if (row >= 0 && row + (at.weight != 0.0f ? 1 : 0) < window.range.count) {
      const unsigned char* from = shared.bytes + job.rows_at + window.shift + row * job.row_bytes;
      combine([&](int byte, auto type) { return *reinterpret_cast<const decltype(type)*>(from + byte); });
    } else {
      const unsigned char* from = values + static_cast<std::int64_t>(base + at.row) * job.row_bytes;
      combine([&](int byte, auto type) { return __ldg(reinterpret_cast<const decltype(type)*>(from + byte)); });
    }
  }
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(warp_output, strip, phase, targets * job.row_bytes);
}

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

Job make_job(const Problem& problem, const Call& call, int& threads, int& shared_bytes) {
  Job job{};
  job.call = call;
  const auto row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  job.row_bytes = static_cast<int>(row_bytes);
  job.words = problem.row_alignment >= 4 && row_bytes % 4 == 0;

  // Whole trajectories while they are short: 4096,100->50,7 with 8 trajectories 4.5 us, 4 trajectories 4.9.
  constexpr std::int64_t kWholeBytes = 32 * 1024;
  const bool separate =
      problem.dense_batches && !problem.packed_source && !problem.packed_target && !problem.shared_source_times;
  if (separate && problem.target > 0 && problem.target <= kMaxThreads / 2) {
    const std::int64_t one = std::max<std::int64_t>(problem.source * (row_bytes + time_bytes), 1);
    const std::int64_t fit = std::min({kWholeBytes / one, kMaxThreads / problem.target, problem.batch});
    job.trajectories = fit >= 2 ? static_cast<int>(fit) : 0;
  }
  if (job.trajectories > 0) {
    job.tile = job.trajectories * static_cast<int>(problem.target);
    job.stamp_capacity = job.row_capacity = job.trajectories * static_cast<int>(problem.source);
  } else {
    job.tile = row_bytes <= 32 ? 256 : 128;
    // A third: rows of few bytes make stamps dear (8,100000->50000,14: 12.7 us against 14.3).
    job.time_margin = 4 + time_margin(problem.longest_source, call.longest_target) / 3;
    job.row_margin = std::min(job.time_margin, 8);
    const auto spanned = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(job.tile) * static_cast<double>(problem.longest_source) /
                  static_cast<double>(call.longest_target)));
    const auto held = [](std::int64_t samples, std::int64_t bytes, std::int64_t most) {
      return static_cast<int>(std::clamp<std::int64_t>((most - kSliceSlack) / bytes, 0, samples));
    };
    job.stamp_capacity = held(spanned + 3 + 2 * job.time_margin, time_bytes, 16 * 1024);
    job.row_capacity = held(spanned + 3 + 2 * job.row_margin, row_bytes, 48 * 1024);
  }
  threads = round_up(job.tile, device::kWarpThreads);
  job.rows_at = round_up(job.stamp_capacity * static_cast<int>(time_bytes) + kSliceSlack, 128);
  job.strips_at = job.rows_at + round_up(job.row_capacity * job.row_bytes + kSliceSlack, 128);
  job.strip_bytes = device::kWarpThreads * job.row_bytes + 16;
  shared_bytes = static_cast<int>(sizeof(Storage) - sizeof(Storage::bytes)) + job.strips_at +
                 threads / device::kWarpThreads * job.strip_bytes;
  return job;
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
  int threads = 0;
  int shared_bytes = 0;
  const Job job = make_job(problem, call, threads, shared_bytes);
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{
      .grid = job.trajectories > 0
                  ? dim3(static_cast<unsigned>((problem.batch + job.trajectories - 1) / job.trajectories))
                  : tile_grid((call.longest_target + job.tile - 1) / job.tile, problem.batch),
      .block = dim3(static_cast<unsigned>(threads)),
      .shared_bytes = shared_bytes,
      .dependent = arguments.dependent_launch};
  with_types(problem, [&](auto* time, auto* value) {
    using Time = std::remove_pointer_t<decltype(time)>;
    using Value = std::remove_pointer_t<decltype(value)>;
    launch_kernel<kernel<Time, Value>>("resample: narrow_rows", config, stream, job);
  });
}

}  // namespace tmaops::ops::resample::narrow_rows
