// The gradient to the values without atomics, fast: a block takes a tile of consecutive samples, fetches the targets
// and gradients that it probably needs at once, locates each target once, and fetches gradients again where it guessed
// wrong. Lanes walk along the samples with one piece of their rows each. Sums run over the targets in their order:
// bit-identical from run to run. The targets of a sample lie side by side where the targets are sorted: a block looks
// itself while they are few, else a kernel in front does. Where they are not sorted, or too many for the window, a warp
// takes a sample and goes through all that may matter.
#include <cmath>

#include "device/shared_memory.cuh"
#include "ops/resample/backward/gpu/window_gather/targets.cuh"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/sizes.hpp"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample_backward::window_gather {
namespace {

constexpr int kThreads = 128;              // at most
constexpr int kStrand = 16;                // samples that a lane walks along, with a chunk of their rows
constexpr int kPieceStrand = 4;            // the same with another piece
constexpr int kPieceUnits = 8;             // words or values
constexpr int kMostGradients = 48 * 1024;  // bytes that a tile is expected to need
constexpr int kMostHeld = 40 * 1024;       // bytes of gradients in shared memory
constexpr int kMostMargin = 128;           // targets
constexpr int kMostSpanned = 1280;         // the same
constexpr int kOrderTargets = 1024;        // that a block looks at the order of
constexpr int kRowMargin = 4;              // gradients
constexpr int kOrderThreads = 256;

/// What a lane sums at a time: a chunk, or up to kPieceUnits words of 4 bytes or values.
enum class Piece { chunk, words, values };

struct Storage {
  device::Barrier rows_ready[2];                // of the gradients as guessed, and as fetched again
  Held rows[2];                                 // as guessed, and as fetched again
  alignas(128) unsigned char bytes[96 * 1024];  // times, begins, weights, gradients, strips
};

struct Job {
  Call call;  // values: grad_values, written; output: grad_output, read
  Pace pace;  // targets per sample
  MemoryRange gradients;
  unsigned char* in_order;  // per trajectory and kOrderTargets targets; null: each block looks itself
  int order_parts;
  Chunks pieces;  // of a row
  int channels;
  int width;                       // bytes of a row
  int tile;                        // samples
  int each;                        // of them, per strand or warp
  int margin, window;              // targets
  int rows_guessed, row_capacity;  // gradients
  SharedArray<int> begins;
  SharedArray<float> weights;
  SharedArray<unsigned char> rows, strip;
  int shared_end;
};

/// Sums of up to `units` units of a row.
template <class Value, Piece piece>
struct Sums {
  using Unit =
      std::conditional_t<piece == Piece::chunk, uint4, std::conditional_t<piece == Piece::words, std::uint32_t, Value>>;
  static constexpr int kUnits = piece == Piece::chunk ? 1 : kPieceUnits;
  static constexpr int kEach = sizeof(Unit) / sizeof(Value);  // values of a unit
  float at[kUnits][kEach]{};

  __device__ __forceinline__ static void unpack(const Unit& unit, float (&values)[kEach]) {
    if constexpr (piece == Piece::chunk) {
      device::unpack_16<Value>(unit, values);
    } else if constexpr (kEach == 2) {
      const float2 pair = device::unpack<Value>(unit);
      values[0] = pair.x;
      values[1] = pair.y;
    } else {
      values[0] = widen(unit);
    }
  }
  __device__ __forceinline__ void store(unsigned char* to, int units) const {
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      if constexpr (piece == Piece::chunk)
        device::store_16(to, device::pack_16<Value>(at[k]));
      else if (k < units) {
        if constexpr (kEach == 2)
          reinterpret_cast<Unit*>(to)[k] = device::pack<Value>(at[k][0], at[k][1]);
        else
          reinterpret_cast<Unit*>(to)[k] = narrow<Value>(at[k][0]);
      }
    }
  }
};

/// Sums the samples [row, end) of the tile. `given`: the piece of the first target's gradient.
template <class Value, Piece piece>
__device__ __forceinline__ void walk(const int* begins, const float* weights, int row, int end, int width, int units,
                                     const unsigned char* given, unsigned char* made) {
  using Piece_ = Sums<Value, piece>;
  Piece_ sum;
  Piece_ next;
  const int high = begins[end + 1];
  int j = begins[row];
#pragma unroll 2
  for (int k = row;; ++k) {
    for (const int until = min(begins[k + 1], high); j < until; ++j, given += width) {
      const float weight = weights[j];
      const bool earlier = fabsf(1.0f - weight) > 0.0f;
      const bool later = fabsf(weight) > 0.0f;
#pragma unroll
      for (int unit = 0; unit < Piece_::kUnits; ++unit) {
        if (piece != Piece::chunk && unit >= units) continue;
        float values[Piece_::kEach];
        Piece_::unpack(reinterpret_cast<const typename Piece_::Unit*>(given)[unit], values);
#pragma unroll
        for (int i = 0; i < Piece_::kEach; ++i) {
          if (earlier) sum.at[unit][i] = fmaf(1.0f - weight, values[i], sum.at[unit][i]);
          if (later) next.at[unit][i] = fmaf(weight, values[i], next.at[unit][i]);
        }
      }
    }
    if (k > row) {
      sum.store(made, units);
      made += width;
    }
    if (k == end) break;
    sum = next;
    next = {};
  }
}

template <class Time, class Value, Piece piece>
__global__ void __launch_bounds__(kThreads, piece == Piece::chunk ? 10 : 8) kernel(const __grid_constant__ Job job) {
  constexpr bool chunks = piece == Piece::chunk;
  constexpr int kPieceBytes = Sums<Value, piece>::kUnits * static_cast<int>(sizeof(typename Sums<Value, piece>::Unit));
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const Call& call = job.call;
  SampleTile tile{};
  tile.b = block_trajectory();
  if (tile.b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) {
    device::init_barrier(shared.rows_ready[0], 1);
    device::init_barrier(shared.rows_ready[1], 1);
    device::fence_barrier_init();
  }
  const bool packed = call.line.source_offsets || call.line.target_offsets;
  if (packed) device::wait_for_previous_kernel();
  tile.samples = static_cast<int>(call.line.source_count(tile.b));
  tile.targets = static_cast<int>(call.line.target_count(tile.b));
  tile.begin = static_cast<int>(blockIdx.x) * job.tile;
  tile.end = min(tile.begin + job.tile, tile.samples);
  if (tile.begin >= tile.end) return;
  tile.low = max(tile.begin - 1, 0);
  tile.held = min(tile.end + 1, tile.samples) - tile.low;

  // Fetch.
  const Pace pace = packed ? pace_of(tile.targets, tile.samples) : job.pace;
  const unsigned char* gradients = static_cast<const unsigned char*>(call.output.data) +
                                   call.output.first(tile.b) * static_cast<std::int64_t>(sizeof(Value));
  unsigned char* rows = array_of(shared.bytes, job.rows);
  const auto slice = [&](Range wanted) { return slice_of(gradients, job.width, wanted, job.gradients); };
  const auto bring = [&](int time, const Slice& wanted) {  // by the leader
    shared.rows[time] = {wanted.held, wanted.shift};
    load_slice(rows, wanted, shared.rows_ready[time]);
  };
  Slice guessed;
  if (leader) {
    guessed = slice(guess(pace, tile.begin, tile.targets, kRowMargin, job.rows_guessed));
    if (!packed && guessed.bytes > 0) device::bulk_prefetch(guessed.from, guessed.bytes);
  }
  if (!packed) device::wait_for_previous_kernel();
  if (leader) bring(0, guessed);
  Range window = guess(pace, tile.begin, tile.targets, job.margin, job.window);

  // Locate.
  int* begins = array_of(shared.bytes, job.begins);
  float* weights = array_of(shared.bytes, job.weights);
  const TileTargets<Time> times(call, tile, array_of(shared.bytes, kFirstArray));
  const unsigned char* flags = job.in_order + tile.b * job.order_parts;
  const auto thread = static_cast<int>(threadIdx.x);
  unsigned char flag = 1;
  if (thread < job.order_parts) flag = flags[thread];
  times.stage(window, true);
  bool ordered = flag != 0;
  for (int k = thread + static_cast<int>(blockDim.x); k < job.order_parts; k += static_cast<int>(blockDim.x))
    ordered = ordered && flags[k] != 0;
  __syncthreads();
  ordered = __syncthreads_and(ordered && times.in_order(window)) != 0;
  bool fast = ordered;
  if (fast && !times.is_complete(window)) {
    window = times.range();
    fast = window.count <= job.window;
    __syncthreads();  // all have looked at the window
    if (fast) times.stage(window, false);
    __syncthreads();
  }
  if (fast) times.locate(window, begins, weights);
  __syncthreads();

  // Fetch again.
  const Range needed = fast ? Range{window.first + begins[0], begins[tile.count() + 1] - begins[0]} : Range{};
  const Range near = shared.rows[0].range;
  const bool again =
      needed.count > 0 && (needed.first < near.first || needed.first + needed.count > near.first + near.count);
  device::wait(shared.rows_ready[0], 0);
  if (again) {
    if (leader) bring(1, slice({needed.first, min(needed.count, job.row_capacity)}));
    device::wait(shared.rows_ready[1], 0);
  }
  device::let_next_kernel_start();

  // Add up.
  unsigned char* made = static_cast<unsigned char*>(const_cast<void*>(call.values.data)) +
                        call.values.first(tile.b) * static_cast<std::int64_t>(sizeof(Value)) +
                        static_cast<std::int64_t>(tile.begin) * job.width;
  if (!fast) {  // every target may matter to every sample
    for (int s = tile.begin + device::warp_index(); s < tile.end; s += static_cast<int>(blockDim.x) / kWarp)
      sum_sample<float>(
          call.line, call.interpolation, sample_of<Time>(call.line, tile.b, s, tile.samples),
          TargetTimes<Time>{call.line, tile.b, tile.targets}, ordered, call.channels,
          [&](std::int64_t t, std::int64_t channel) {
            return widen(reinterpret_cast<const Value*>(gradients)[t * call.channels + channel]);
          },
          [&](std::int64_t channel, float sum) {
            reinterpret_cast<Value*>(made)[(s - tile.begin) * call.channels + channel] = narrow<Value>(sum);
          });
    return;
  }
  const Held held = shared.rows[again ? 1 : 0];
  const int strand = row_of(job.pieces, thread);
  const int offset = (thread - strand * job.pieces.count) * kPieceBytes;
  const int row = strand * job.each;
  const int end = min(row + job.each, tile.count());
  const int phase = chunks ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(made) & 15);
  unsigned char* strip = array_of(shared.bytes, job.strip);
  unsigned char* to = (chunks ? made : strip + phase) + static_cast<std::int64_t>(row) * job.width + offset;
  if (row < end && row < job.tile) {
    const int units = (job.width - offset) / static_cast<int>(sizeof(typename Sums<Value, piece>::Unit));
    const int low = begins[row];
    const int high = begins[end + 1];
    const int local = window.first + low - held.range.first;
    if (local >= 0 && local + high - low <= held.range.count)
      walk<Value, piece>(begins, weights, row, end, job.width, units, rows + held.shift + local * job.width + offset,
                         to);
    else
      walk<Value, piece>(begins, weights, row, end, job.width, units,
                         gradients + static_cast<std::int64_t>(window.first + low) * job.width + offset, to);
  }
  if constexpr (!chunks) {
    __syncthreads();
    const int stored = phase + tile.count() * job.width;
    const int share = round_up((stored * kWarp + static_cast<int>(blockDim.x) - 1) / static_cast<int>(blockDim.x), 16);
    const int first = device::warp_index() * share;
    const int begin = max(first, phase);
    const int count = min(first + share, stored) - begin;
    if (count > 0) store_strip<Value>(made + (begin - phase), strip + first, begin - first, count);
  }
}

/// Leaves for the other kernel whether targets are in order.
template <class Time>
__global__ void __launch_bounds__(kOrderThreads) order_kernel(const __grid_constant__ Job job) {
  const std::int64_t b = block_trajectory();
  if (b >= job.call.line.batch) return;
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();  // not before: its blocks would wait where those of the kernel in front still run
  const TargetTimes<Time> targets{job.call.line, b, job.call.line.target_count(b)};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kOrderTargets;
  const bool all = __syncthreads_and(targets.in_order(first, min(first + kOrderTargets, targets.count))) != 0;
  if (threadIdx.x == 0) job.in_order[b * job.order_parts + blockIdx.x] = all ? 1 : 0;
}

/// `threads`: of a block.
Job make_job(const Problem& problem, const Call& call, Piece piece, int& threads) {
  Job job{};
  job.call = call;
  job.channels = static_cast<int>(problem.channels);
  job.width = static_cast<int>(problem.row_bytes());
  job.pace = pace_of(problem.target, problem.source);
  job.gradients = memory_of(call.output, problem.batch, problem.target, problem.channels, problem.output);
  const bool chunks = piece == Piece::chunk;
  const int unit = piece == Piece::words ? 4 : static_cast<int>(size_of(problem.values));
  const int piece_bytes = chunks ? 16 : kPieceUnits * unit;
  job.pieces = chunks_of((job.width + piece_bytes - 1) / piece_bytes * 16);
  const auto samples = static_cast<int>(std::min<std::int64_t>(problem.longest_source, 1 << 20));
  const double pace = static_cast<double>(call.longest_target) / static_cast<double>(problem.longest_source);
  const auto targets_of = [&](int tile) { return static_cast<int>(std::min(std::ceil(tile * pace), 1e6)) + 3; };
  const auto too_large = [&](int tile) {
    const int targets = targets_of(tile);
    return targets > kMostSpanned || (targets + (chunks ? 0 : tile)) * job.width > kMostGradients;
  };
  job.each = chunks ? kStrand : kPieceStrand;
  const int wanted = round_up((samples + job.each - 1) / job.each * job.pieces.count, kWarp);
  threads = chunks ? kThreads : std::min(kThreads, wanted);
  const int parts = std::max(threads / job.pieces.count, 1);
  while (job.each > 1 && too_large(job.each * parts)) job.each /= 2;
  job.each = std::min(job.each, (samples + parts - 1) / parts);
  job.tile = job.each * parts;

  const int spanned = std::min(targets_of(job.tile), kMostSpanned);
  const auto most = [&](int targets) { return static_cast<int>(std::min<std::int64_t>(targets, call.longest_target)); };
  job.margin = std::min(time_margin(call.longest_target, problem.longest_source), kMostMargin);
  job.window = most(call.longest_target <= kOrderTargets ? kOrderTargets : spanned + 2 * job.margin);
  job.row_capacity = most(std::min(spanned + spanned / 8 + 2 * kRowMargin, std::max(kMostHeld / job.width, 1)));
  job.rows_guessed = std::min(spanned + 2 * kRowMargin, job.row_capacity);
  SharedLayout layout;
  layout.add<unsigned char>((job.tile + 2 + job.window) * static_cast<std::int64_t>(size_of(problem.times)));
  job.begins = layout.add<int>(job.tile + 2);
  job.weights = layout.add<float>(std::max(job.window, 1));
  job.rows = layout.add<unsigned char>(slice_bytes(job.row_capacity, job.width));
  job.strip = layout.add<unsigned char>(chunks ? 0 : job.tile * job.width + 31);
  job.shared_end = layout.end;
  return job;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device, arguments.workspace);
  const Call call = device_call(work, problem, arguments.forward());
  if (problem.longest_source == 0 || problem.batch == 0 || problem.channels == 0) return work;
  const bool in_words = problem.row_bytes() % 4 == 0 && problem.row_alignment % 4 == 0;
  const Piece piece = supports_16_byte_rows(problem) ? Piece::chunk : (in_words ? Piece::words : Piece::values);
  int threads = 0;
  Job job = make_job(problem, call, piece, threads);
  LaunchShape shape{.grid = tile_grid((problem.longest_source + job.tile - 1) / job.tile, problem.batch),
                    .block = static_cast<unsigned>(threads),
                    .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + job.shared_end,
                    .dependent = arguments.dependent_launch};
  if (!problem.uniform_grid && call.longest_target > kOrderTargets) {  // a kernel in front looks at their order
    const std::int64_t parts = (call.longest_target + kOrderTargets - 1) / kOrderTargets;
    const auto bytes = static_cast<std::size_t>(problem.batch * parts);
    job.in_order = work.allocate(bytes);
    work.prepare_memset(job.in_order, 0, bytes);
    job.order_parts = static_cast<int>(parts);
    const LaunchShape front{
        .grid = tile_grid(parts, problem.batch), .block = kOrderThreads, .dependent = arguments.dependent_launch};
    resample::visit_time_type(problem.times, [&]<class Time>(Time*) { work.add(order_kernel<Time>, front, job); });
    shape.dependent = true;  // the kernel waits for the one in front of it
  }
  with_types(problem, [&]<class Time, class Value>(Time*, Value*) {
    if (piece == Piece::chunk) return work.add(kernel<Time, Value, Piece::chunk>, shape, job);
    if constexpr (sizeof(Value) == 2)
      if (piece == Piece::words) return work.add(kernel<Time, Value, Piece::words>, shape, job);
    work.add(kernel<Time, Value, Piece::values>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::resample_backward::window_gather
