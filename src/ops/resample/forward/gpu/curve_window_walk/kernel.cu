// PCHIP and slerp for plain calls, where one of them is the interpolation of all channels. Windows of times and rows
// come by two bulk copies as in bulk_window. A lane keeps four values of a row and walks along consecutive targets, a
// strand. (By target, as in curve_window, every slope is worked out twice and every value unpacked four times.)
#include "ops/resample/forward/gpu/curve_window_walk/walk.cuh"

namespace tmaops::ops::resample::curve_window_walk {
namespace {

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  Needed needed[kWalkTargets / device::kWarpThreads];
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows, stops, slow stops, rates: as much as the tile needs
};

template <class Value, class Walk>
__global__ void __launch_bounds__(kWalkThreads, kWalkBlocks) kernel(const __grid_constant__ WalkTile walk) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const PlainTile& tile = walk.tile;
  const auto thread = static_cast<int>(threadIdx.x);
  const PlainBlock block = plain_block<float>(tile);
  if (thread == 0) init_barriers(shared);
  fetch_ahead(tile);
  device::wait_for_previous_kernel();

  // Fetch, with a guess of the rows, and search.
  const Range guess{block.first_row, tile.row_capacity};
  float q{};
  if (thread < block.targets) q = plain_target<float>(tile, block, thread);
  if (thread == 0) {
    fetch_times(tile, block, shared.bytes, shared.times_ready);
    fetch_rows(tile, block, guess, shared.bytes, shared.rows_ready);
  }
  __syncthreads();  // barriers are initialised
  device::wait(shared.times_ready, 0);
  Located found{};
  if (thread < kWalkTargets) {
    if (thread < block.targets) found = locate_walk<Walk>(tile, block, shared.bytes, q);
    const Needed needed = needed_samples<Walk>(found, tile.samples, thread < block.targets);
    if (device::lane_index() == 0) shared.needed[thread / device::kWarpThreads] = needed;
  }
  __syncthreads();  // it is known which samples are needed

  // Where the guess was wrong, fetch exactly these; leave what the walk needs.
  const Needed some = shared.needed[0];
  const Needed others = shared.needed[1];
  const int lowest = min(some.first, others.first);
  const int highest = max(some.last, others.last);
  const bool held = lowest >= guess.first && highest < guess.first + guess.count;
  const Range rows = held ? guess : Range{lowest, min(highest + 1 - lowest, tile.row_capacity)};
  if (!held && thread == 0) {
    device::wait(shared.rows_ready, 0);
    fetch_rows(tile, block, rows, shared.bytes, shared.rows_ready);
  }
  bool slow = false;
  if (thread < block.targets) slow = leave_stop<Walk>(walk, shared.bytes, found, rows, thread);
  // The end of each strand, and of the targets.
  Stop* stops = array_of(shared.bytes, walk.stops);
  if (thread < kWalkTargets / kStrandTargets)
    stops[stop_index(thread * kStrandTargets) + kStrandTargets].at = Stop::kEnd;
  if (thread == 0 && block.targets < kWalkTargets) stops[stop_index(block.targets)].at = Stop::kEnd;
  if constexpr (Walk::kSlopes)  // from the last thread on: they have no targets
#pragma unroll 1
    for (int row = kWalkThreads - 1 - thread; row < rows.count; row += kWalkThreads)
      locate_rate<Walk>(walk, block, shared.bytes, rows.first, row);
  const bool any_slow = __syncthreads_or(slow) != 0;  // stops and rates are there

  // Combine.
  device::wait(shared.rows_ready, held ? 0 : 1);
  device::let_next_kernel_start();
  const int begin = device::warp_index() * kStrandTargets;
  const int count = min(kStrandTargets, block.targets - begin);
  if (count <= 0) return;
  constexpr int bytes = Quad<Value>::kBytes;
  const Stop* first = stops + stop_index(begin);
  const int column = device::lane_index() * bytes;
  bool good = true;
  for (int at = column; at < block.width; at += device::kWarpThreads * bytes)
    good &= walk_strand<Value, Walk>(first, shared.bytes, tile.rows_held.at + at, walk.rates.at, block.width,
                                     block.output(tile, begin) + at);
  if (!any_slow && good) return;
  walk_slowly<Value, Walk>(block.output(tile, begin),
                           tile.values + static_cast<std::int64_t>(block.value_unit(tile, 0)) * 16, block.width, first,
                           array_of(shared.bytes, walk.slow) + begin, count, !good);
}

WalkTile make_walk(const Problem& problem, const Arguments& arguments) {
  // Twelve rows of 256 bytes: kWalkBlocks still fit on a multiprocessor, and the rows between 64 random targets mostly
  // do once they are known.
  constexpr int kMarginBytes = 3072;
  const auto row_bytes = static_cast<int>(problem.row_bytes());
  PlainCut cut = windows_cut(problem, kWalkThreads);
  cut.targets = kWalkTargets;
  cut.targets_per_warp = kStrandTargets;
  cut.row_margin = std::min(cut.time_margin, std::max(8, kMarginBytes / row_bytes));
  if (arguments.dependent_launch) {  // else there is nothing to overlap with
    cut.ahead_times = kAheadBytes;
    cut.ahead_values = std::min(kAheadBytes, problem.batch * problem.source * row_bytes);
  }
  WalkTile walk{};
  walk.tile = make_plain_tile(problem, arguments, cut);
  walk.tile.interpolation = Interpolation::linear;  // places keep their weights
  SharedLayout layout;
  layout.add<unsigned char>(walk.tile.shared_end);
  walk.stops = layout.add<Stop>(stop_index(walk.tile.tile), 16);
  walk.slow = layout.add<SlowStop>(walk.tile.tile, 16);
  walk.rates = layout.add<float>(walk.tile.row_capacity, 16);
  walk.shared_end = layout.end;
  return walk;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  Work work(kSite, problem.device);
  const WalkTile walk = make_walk(problem, arguments);
  const LaunchShape shape = tile_launch(problem, arguments, problem.target, walk.tile.tile, kWalkThreads,
                                        static_cast<int>(offsetof(Storage, bytes)) + walk.shared_end);
  with_value_type(problem.values, [&]<class Value>(Value*) {
    if (problem.groups.front().interpolation == Interpolation::slerp)
      work.add(kernel<Value, SlerpWalk<Value>>, shape, walk);
    else
      work.add(kernel<Value, PchipWalk<Value>>, shape, walk);
  });
  return work;
}

}  // namespace tmaops::ops::resample::curve_window_walk
