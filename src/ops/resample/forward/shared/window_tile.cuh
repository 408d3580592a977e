// A tile of targets by one block, with windows of times and 16-byte rows whose places are guessed: one memory latency
// instead of two. The threads search the times while the rows arrive, then read the rows from shared memory. What lies
// outside the windows is read from global memory. A kernel brings the copy of the rows.
#pragma once

#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/tile.hpp"
#include "ops/resample/forward/shared/window_rows.cuh"
#include "ops/resample/shared/shared_array.cuh"
#include "ops/resample/shared/slice.cuh"

namespace tmaops::ops::resample::gpu {

struct WindowStorage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Held times;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows; the launch asks for what the tile needs
};

/// `load_rows(b, near, rows, to)`: one thread calls it. It brings rows `near` of trajectory `b` to `to` and lets
/// rows_ready expect their bytes.
template <class Time, class Value, class LoadRows>
__device__ __forceinline__ void run_window_tile(WindowStorage& shared, const Call& call, const Tile& tile,
                                                const LoadRows& load_rows) {
  const std::int64_t b = block_trajectory();
  if (b >= call.line.batch) return;
  const bool leader = device::warp_index() == 0 && device::elect_one();
  if (leader) init_barriers(shared);
  device::wait_for_previous_kernel();

  // Fetch.
  const Trajectory<Time> of = trajectory<Time>(call, b);
  const int begin = static_cast<int>(blockIdx.x) * tile.targets;
  if (begin >= of.targets) return;
  const int t = begin + target_of_lane(tile.targets_per_warp);
  const bool active = t < of.targets && device::lane_index() < tile.targets_per_warp;
  Time q{};
  if (active) q = target_time<Time>(call.line, b, t);
  const RowBytes rows = row_bytes<Value>(call, b);
  const Range near = guess(of.pace, begin, of.samples, tile.row_margin, tile.row_capacity);
  if (leader) {
    const Slice times = time_slice(call, of, guess(of.pace, begin, of.samples, tile.time_margin, tile.time_capacity));
    load_slice(array_of(shared.bytes, kFirstArray), times, shared.times_ready);
    load_rows(b, near, rows, array_of(shared.bytes, tile.rows));
    shared.times = {times.held, times.shift};
  }

  // Search.
  __syncthreads();  // barriers are initialised
  const Held held = shared.times;
  device::wait(shared.times_ready, 0);
  Place<int> at{0, missing()};
  if (active) {
    const auto* window = reinterpret_cast<const Time*>(array_of(shared.bytes, kFirstArray) + held.shift);
    if (of.samples > 0) at = locate(call, of, window, held.range, q);
    write_valid(call, b, t, at.weight);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  device::let_next_kernel_start();
  write_window_rows<Value>(tile.chunks, Window{array_of(shared.bytes, tile.rows), near, rows, of.samples > 0}, at, t,
                           active);
}

inline LaunchShape window_launch(const Problem& problem, const Arguments& arguments, const Call& call,
                                 const Tile& tile) {
  return tile_launch(problem, arguments, call.longest_target, tile.targets, kTileThreads,
                     static_cast<int>(offsetof(WindowStorage, bytes)) + tile.shared_end);
}

}  // namespace tmaops::ops::resample::gpu
