// The gradient to the values without atomics, fast: a block takes a tile of consecutive samples, locates the targets
// around it once, in a window guessed from the position of the tile, and leaves their samples and weights in shared
// memory. Then it knows the targets of every sample and fetches exactly their gradients by one bulk copy, and the warps
// add them up in pieces of 16 bytes. Sums run over the targets in their order: bit-identical from run to run.
//
// The window can only be guessed, and the targets of a sample lie side by side, where the targets are sorted: a block
// looks itself while they are few, else a kernel in front does. A block that guessed wrong searches for its window. One
// whose targets are not sorted, or too many, goes through all that may matter, window by window.
#include <cmath>
#include <vector>

#include "device/shared_memory.cuh"
#include "ops/resample/backward/gpu/window_gather/targets.cuh"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/sizes.hpp"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample_backward::window_gather {
namespace {

constexpr int kMostThreads = 128;
constexpr int kBlocks = 7;                 // of kMostThreads per multiprocessor, at least: 72 registers
constexpr int kMostGradients = 40 * 1024;  // bytes of the window of gradients
constexpr int kMostWindow = 1024;          // targets located at once
constexpr int kFlightBytes = 16;           // of targets that a thread loads before it uses the first
constexpr int kMostOwnOrder = 1024;        // targets that a block looks at itself
constexpr int kOrderTargets = 1024;        // that a block of the kernel in front looks at
constexpr int kOrderThreads = 256;

struct Storage {
  device::Barrier rows_ready;
  Held rows;
  alignas(128) unsigned char bytes[96 * 1024];  // parts, bounds, timestamps, gradients, strips
};

/// The parts stand first in shared memory.
constexpr SharedArray<Part> kParts{};

struct Job {
  Call call;  // values: grad_values, written; output: grad_output, read
  Pace pace;  // targets per sample
  MemoryRange gradients;
  unsigned char* in_order;  // per trajectory and kOrderTargets targets; null: each block looks itself
  int order_parts;
  Chunks chunks;  // pieces of a row
  int channels;
  int width;  // bytes of a row
  int samples_per_warp;
  int margin;        // targets
  int window;        // targets
  int row_capacity;  // gradients in shared memory
  SharedArray<int> bounds;
  SharedArray<unsigned char> times, rows, strips;
  int strip_bytes, shared_end;
};

/// Adds `part` times up to 16 bytes of a gradient.
template <class Value, RowsAre rows_are>
__device__ __forceinline__ void add(Unpacked<Value>& sum, float part, const unsigned char* from, int count) {
  if constexpr (rows_are == RowsAre::chunks) {
    const Unpacked<Value> given = unpack<Value>(*reinterpret_cast<const uint4*>(from));
#pragma unroll
    for (int k = 0; k < Unpacked<Value>::count; ++k) sum.at[k] = fmaf(part, given.at[k], sum.at[k]);
  } else {
#pragma unroll
    for (int k = 0; k < Unpacked<Value>::count; ++k)
      if (k < count) sum.at[k] = fmaf(part, widen(reinterpret_cast<const Value*>(from)[k]), sum.at[k]);
  }
}

template <class Value, RowsAre rows_are>
__global__ void __launch_bounds__(kMostThreads, kBlocks) kernel(const __grid_constant__ Job job) {
  constexpr bool whole = rows_are == RowsAre::chunks;
  constexpr int values = Unpacked<Value>::count;
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  SampleTile tile{};
  tile.b = block_trajectory();
  if (tile.b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  device::wait_for_previous_kernel();

  // Locate the targets around the tile.
  tile.samples = static_cast<int>(call.line.source_count(tile.b));
  tile.targets = static_cast<int>(call.line.target_count(tile.b));
  const auto threads = static_cast<int>(blockDim.x);
  const int tile_samples = job.samples_per_warp * (threads / device::kWarpThreads);
  tile.begin = static_cast<int>(blockIdx.x) * tile_samples;
  tile.end = min(tile.begin + tile_samples, tile.samples);
  if (tile.begin >= tile.end) return;
  tile.low = max(tile.begin - 1, 0);
  tile.held = min(tile.end + 1, tile.samples) - tile.low;
  const bool packed = call.line.source_offsets || call.line.target_offsets;
  const Pace pace = packed ? pace_of(tile.targets, tile.samples) : job.pace;
  const unsigned char* gradients = static_cast<const unsigned char*>(call.output.data) +
                                   call.output.first(tile.b) * static_cast<std::int64_t>(sizeof(Value));
  Part* parts = array_of(shared.bytes, kParts);
  int* bounds = array_of(shared.bytes, job.bounds);
  void* source_times = array_of(shared.bytes, job.times);
  Range window = guess(pace, tile.begin, tile.targets, job.margin, job.window);
  const auto bring = [&](int from, int count) {  // gradients, by the leader
    const Slice slice =
        slice_of(gradients, job.width, {window.first + from, min(max(count, 0), job.row_capacity)}, job.gradients);
    shared.rows = {slice.held, slice.shift};
    load_slice(array_of(shared.bytes, job.rows), slice, shared.rows_ready);
  };
  // The whole trajectory needs no search first.
  const bool brought = window.count == tile.targets && tile.targets <= job.row_capacity;
  if (leader && brought) bring(0, window.count);
  bool ordered = true;
  bool fast = false;
  with_times(call, tile, source_times, [&]<class Time>(const TileTargets<Time>& times) {
    constexpr int kFlight = kFlightBytes / sizeof(Time);
    Time q[kFlight];
    int j = static_cast<int>(threadIdx.x);
    const auto load = [&] {
#pragma unroll
      for (int k = 0; k < kFlight; ++k)
        if (j + k * threads < window.count) q[k] = times.target(window.first + j + k * threads);
    };
    load();
    times.stage(static_cast<Time*>(source_times));
    if (job.in_order) {
      for (int k = static_cast<int>(threadIdx.x); k < job.order_parts; k += threads)
        ordered = ordered && job.in_order[tile.b * job.order_parts + k] != 0;
    } else if (!call.line.uniform_grid) {
      ordered = times.in_order(0, tile.targets);
    }
    ordered = __syncthreads_and(ordered) != 0;
#pragma unroll 1
    for (bool guessed = true;; guessed = false) {
      while (j < window.count) {
#pragma unroll
        for (int k = 0; k < kFlight; ++k)
          if (j + k * threads < window.count) parts[j + k * threads] = times.part(q[k]);
        j += kFlight * threads;
        load();
      }
      __syncthreads();
      fast = ordered && (!guessed || is_complete(parts, window, tile.targets, tile.end - tile.begin));
      if (fast || !ordered) break;
      window = times.range();
      if (window.count > job.window) break;
      __syncthreads();  // the parts of the guess were looked at
      j = static_cast<int>(threadIdx.x);
      load();
    }
  });

  // Which targets each sample has: those of row - 1 and row are [bounds[row], bounds[row + 2]).
  if (fast) {
    // bounds[k] is the first target of row k - 1 or behind: each target sets those between its row and the one in
    // front.
    const int ends = tile.end - tile.begin + 2;
    for (int j = static_cast<int>(threadIdx.x); j <= window.count; j += threads) {
      const int end = j < window.count ? min(parts[j].row + 2, ends) : ends;
      for (int k = j > 0 ? max(parts[j - 1].row + 2, 0) : 0; k < end; ++k) bounds[k] = j;
    }
    __syncthreads();
  }
  if (leader && !brought) bring(fast ? bounds[0] : 0, fast ? bounds[tile.end - tile.begin + 1] - bounds[0] : 0);

  // Add up.
  const int first = device::warp_index() * job.samples_per_warp;
  const int count = min(job.samples_per_warp, tile.end - tile.begin - first);
  unsigned char* made = static_cast<unsigned char*>(const_cast<void*>(call.values.data)) +
                        call.values.first(tile.b) * static_cast<std::int64_t>(sizeof(Value)) +
                        static_cast<std::int64_t>(tile.begin + first) * job.width;
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(made) & 15);
  unsigned char* strip = array_of(shared.bytes, job.strips) + device::warp_index() * job.strip_bytes;
  const int items = max(count, 0) * job.chunks.count;
  const auto write = [&](int row, int column, const Unpacked<Value>& sum, int present) {
    if constexpr (whole) {
      device::store_16_streaming(made + (row * job.chunks.count + column) * 16, pack(sum));
    } else {
      auto* to = reinterpret_cast<Value*>(strip + phase + row * job.width + column * 16);
#pragma unroll
      for (int k = 0; k < values; ++k)
        if (k < present) to[k] = narrow<Value>(sum.at[k]);
    }
  };
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  if (fast) {
    const Held rows = shared.rows;
    for (int item = device::lane_index(); item < items; item += device::kWarpThreads) {
      const int row = row_of(job.chunks, item);
      const int column = item - row * job.chunks.count;
      const int present = min(job.channels - column * values, values);
      const int low = bounds[first + row];
      const int middle = bounds[first + row + 1];
      const int high = bounds[first + row + 2];
      Unpacked<Value> sum{};
      const auto sum_up = [&](const unsigned char* from) {
        for (int j = low; j < high; ++j, from += job.width) {
          const float weight = parts[j].weight;
          const float part = j < middle ? weight : 1.0f - weight;
          if (fabsf(part) > 0.0f) add<Value, rows_are>(sum, part, from, present);
        }
      };
      const int local = window.first + low - rows.range.first;
      if (local >= 0 && local + high - low <= rows.range.count)
        sum_up(array_of(shared.bytes, job.rows) + rows.shift + local * job.width + column * 16);
      else
        sum_up(gradients + static_cast<std::int64_t>(window.first + low) * job.width + column * 16);
      write(row, column, sum, present);
    }
    if constexpr (!whole) {
      __syncwarp();
      if (count > 0) store_strip<Value>(made, strip, phase, count * job.width);
    }
  } else {
    // Every target may matter to every sample: one sum per thread, so that the other way keeps its registers.
    const Range all = ordered ? window : Range{0, tile.targets};
    const auto* given = reinterpret_cast<const Value*>(gradients) + all.first * static_cast<std::int64_t>(job.channels);
    const int elements = max(count, 0) * job.channels;
#pragma unroll 1
    for (int base = 0; base < job.samples_per_warp * job.channels; base += device::kWarpThreads) {
      const int element = base + device::lane_index();
      const int row = element / job.channels;
      float sum = 0;
#pragma unroll 1
      for (int from = 0; from < all.count; from += job.window) {
        const int located = min(job.window, all.count - from);
        __syncthreads();  // the parts in front were used
        with_times(call, tile, source_times, [&](const auto& times) {
          for (int j = static_cast<int>(threadIdx.x); j < located; j += threads)
            parts[j] = times.part(times.target(all.first + from + j));
        });
        __syncthreads();
        for (int j = 0; element < elements && j < located; ++j)
          if (const float part = share(parts[j], first + row); fabsf(part) > 0.0f)
            sum = fmaf(
                part, widen(given[(from + j) * static_cast<std::int64_t>(job.channels) + element - row * job.channels]),
                sum);
      }
      if (element < elements) reinterpret_cast<Value*>(made)[element] = narrow<Value>(sum);
    }
  }
}

/// Leaves for the other kernel whether targets are in order.
__global__ void __launch_bounds__(kOrderThreads) order_kernel(const __grid_constant__ Job job) {
  SampleTile tile{};
  tile.b = block_trajectory();
  if (tile.b >= job.call.line.batch) return;
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();  // not before: its blocks would wait where those of the kernel in front still run
  tile.targets = static_cast<int>(job.call.line.target_count(tile.b));
  const int first = static_cast<int>(blockIdx.x) * kOrderTargets;
  with_times(job.call, tile, nullptr, [&](const auto& times) {
    const bool ordered = times.in_order(first, min(first + kOrderTargets, tile.targets));
    const bool all = __syncthreads_and(ordered) != 0;
    if (threadIdx.x == 0) job.in_order[tile.b * job.order_parts + blockIdx.x] = all ? 1 : 0;
  });
}

/// How many targets a block looks at in front of the others; 0: each block looks itself.
int order_parts(const Problem& problem, std::int64_t longest_target) {
  if (problem.uniform_grid || longest_target <= kMostOwnOrder) return 0;
  return static_cast<int>((longest_target + kOrderTargets - 1) / kOrderTargets);
}

/// `threads`: of a block.
Job make_job(const Problem& problem, const Call& call, RowsAre rows_are, int& threads) {
  Job job{};
  job.call = call;
  job.channels = static_cast<int>(problem.channels);
  job.width = static_cast<int>(problem.row_bytes());
  job.chunks = chunks_of(round_up(job.width, 16));
  job.pace = pace_of(problem.target, problem.source);
  job.gradients = memory_of(call.output, problem.batch, problem.target, problem.channels, problem.output);

  const auto samples = static_cast<double>(problem.longest_source);
  const auto targets = static_cast<double>(call.longest_target);
  const auto targets_of = [&](int tile) { return static_cast<int>(std::ceil(tile * targets / samples)) + 3; };
  // About sixteen pieces per lane, and gradients that fit.
  job.samples_per_warp = std::clamp(16 * device::kWarpThreads / job.chunks.count, 1, 128);
  // One warp per block where it does for a whole trajectory: blocks are the only ones that hide each other's latency.
  const int warps = problem.longest_source <= job.samples_per_warp ? 1 : kMostThreads / device::kWarpThreads;
  const auto needed = static_cast<int>(std::min<std::int64_t>((problem.longest_source + warps - 1) / warps, 1 << 20));
  job.samples_per_warp = std::min(job.samples_per_warp, needed);
  while (job.samples_per_warp > 1 && targets_of(job.samples_per_warp * warps) * job.width > kMostGradients)
    job.samples_per_warp /= 2;
  threads = warps * device::kWarpThreads;
  const int tile = job.samples_per_warp * warps;
  const int spanned = std::min(targets_of(tile), kMostWindow);
  job.margin = std::min(time_margin(call.longest_target, problem.longest_source), (kMostWindow - spanned) / 2);
  job.window = static_cast<int>(std::min<std::int64_t>(spanned + 2 * job.margin, call.longest_target));
  job.row_capacity = static_cast<int>(
      std::min<std::int64_t>(std::min(spanned + spanned / 2 + 16, kMostGradients / job.width), call.longest_target));
  job.strip_bytes = rows_are == RowsAre::chunks ? 0 : (job.samples_per_warp * job.width + 31) / 16 * 16;
  SharedLayout layout;
  layout.add<Part>(std::max(job.window, 1));
  job.bounds = layout.add<int>(tile + 2);
  job.times = layout.add<unsigned char>((tile + 2) * static_cast<int>(size_of(problem.times)));
  job.rows = layout.add<unsigned char>(slice_bytes(job.row_capacity, job.width));
  job.strips = layout.add<unsigned char>(warps * job.strip_bytes);
  job.shared_end = layout.end;
  return job;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments.forward());
  if (problem.longest_source == 0 || problem.batch == 0 || problem.channels == 0) return work;
  const RowsAre rows_are = supports_16_byte_rows(problem) ? RowsAre::chunks : RowsAre::any_bytes;
  int threads = 0;
  Job job = make_job(problem, call, rows_are, threads);
  const int tile = job.samples_per_warp * (threads / kWarp);
  LaunchShape shape{.grid = tile_grid((problem.longest_source + tile - 1) / tile, problem.batch),
                    .block = static_cast<unsigned>(threads),
                    .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + job.shared_end,
                    .dependent = arguments.dependent_launch};
  if (const int parts = order_parts(problem, call.longest_target); parts > 0) {
    const auto bytes = static_cast<std::size_t>(problem.batch * parts);
    job.in_order = work.allocate(bytes);
    work.prepare_memset(job.in_order, 0, bytes);
    job.order_parts = parts;
    work.add(order_kernel,
             {.grid = tile_grid(parts, problem.batch), .block = kOrderThreads, .dependent = arguments.dependent_launch},
             job);
    shape.dependent = true;  // the kernel waits for the one in front of it
  }
  with_value_type(problem.values, [&]<class Value>(Value*) {
    if (rows_are == RowsAre::chunks)
      work.add(kernel<Value, RowsAre::chunks>, shape, job);
    else
      work.add(kernel<Value, RowsAre::any_bytes>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::resample_backward::window_gather
