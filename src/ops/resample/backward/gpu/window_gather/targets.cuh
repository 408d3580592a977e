// What the targets around a tile of samples give to its samples: the backward pass, located once for all channels.
#pragma once

#include "ops/resample/shared/bracket.cuh"

namespace tmaops::ops::resample_backward::window_gather {

using namespace resample::gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code
using resample::Timeline;

/// What a target gives: 1 - weight to sample `row` of the tile, weight to the next; NaN: nothing.
struct Part {
  int row;
  float weight;
};
inline constexpr int kBeforeTile = -2;

/// The tile of a block.
struct SampleTile {
  std::int64_t b;
  int begin, end;  // samples
  int low, held;   // the timestamps around them: [low, low + held)
  int samples, targets;
};

/// The first of `count` indices that is_before(index) does not hold for; in range whatever it says.
template <class IsBefore>
__device__ __forceinline__ int first_not_before(int count, const IsBefore& is_before) {
  int low = 0;
  int high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (is_before(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The targets of one tile with times of one type.
template <class Time>
struct TileTargets {
  const Call& call;
  const SampleTile& tile;
  const Time* timestamps;  // in shared memory

  __device__ __forceinline__ Time target(int t) const { return target_time<Time>(call.line, tile.b, t); }

  /// Whether no target of [first, end) is before the one in front of it, as far as this thread looks.
  __device__ __forceinline__ bool in_order(int first, int end) const {
    bool ordered = true;
#pragma unroll 4
    for (int t = first + static_cast<int>(threadIdx.x); t < end; t += static_cast<int>(blockDim.x))
      if (t + 1 < tile.targets) ordered = ordered && target(t) <= target(t + 1);
    return ordered;
  }

  __device__ __forceinline__ void stage(Time* to) const {
    const Timeline& line = call.line;
    const auto* from = line.source.at<const Time>(tile.b);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < tile.held; i += static_cast<int>(blockDim.x))
      to[i] = __ldg(from + (tile.low + i) * line.source.row_stride);
  }

  /// The two timestamps around a target, of those that are staged.
  __device__ __forceinline__ Interval<Time> interval(Time q) const {
    const auto at = [&](int i) { return timestamps[i]; };
    const int last = tile.held - 1;
    if (tile.held < 4) {
      const int i = earlier_sample(count_until<int>(at, 0, tile.held, q), tile.held);
      return {i, timestamps[i], timestamps[last > 0 ? i + 1 : i]};
    }
    const float pace =
        __fdividef(static_cast<float>(last), static_cast<float>(difference(timestamps[last], timestamps[0])));
    const float guess = static_cast<float>(difference(q, timestamps[0])) * pace;
    const auto most = static_cast<float>(tile.held);
    return find_near(at, tile.held, static_cast<int>(fminf(fmaxf(guess, -most), most)) - 1, pace, q);
  }

  /// The part of a target. Rows of neighbouring targets in order never go down.
  __device__ __forceinline__ Part part(Time q) const {
    const int last = tile.held - 1;
    if (tile.low > 0 && q < timestamps[0]) return {kBeforeTile, 0.0f};
    if (tile.low + last < tile.samples - 1 && q >= timestamps[last]) return {tile.end - tile.begin, 0.0f};
    const Interval<Time> in = interval(q);
    Place<int> found = resolve(call.interpolation, place(call.line, tile.samples, tile.low + in.i, in.x, in.next, q));
    // On the last sample: the end of the last interval, as all behind it that go on with its curve.
    if (found.row == tile.samples - 1 && found.row > 0) found = {found.row - 1, 1.0f};
    return {found.row - tile.begin, found.weight};
  }

  /// Targets that may matter to the tile, if they are in order.
  __device__ __forceinline__ Range range() const {
    const auto before = [&](Time time) {
      return first_not_before(tile.targets, [&](int t) { return target(t) < time; });
    };
    const int last = tile.held - 1;
    const int first = tile.low > 0 ? before(timestamps[0]) : 0;
    const int end = tile.low + last < tile.samples - 1 ? before(timestamps[last]) : tile.targets;
    return {first, max(end - first, 0)};
  }
};

/// Calls fn with the TileTargets of the type that the call has.
template <class Fn>
__device__ __forceinline__ void with_times(const Call& call, const SampleTile& tile, void* timestamps, const Fn& fn) {
  if (call.line.dtype == DType::f32)
    fn(TileTargets<float>{call, tile, static_cast<const float*>(timestamps)});
  else if (call.line.dtype == DType::f64)
    fn(TileTargets<double>{call, tile, static_cast<const double*>(timestamps)});
  else
    fn(TileTargets<std::int64_t>{call, tile, static_cast<const std::int64_t*>(timestamps)});
}

/// Whether the parts of [0, count) say all that there is to know about a tile of `samples`.
__device__ __forceinline__ bool is_complete(const Part* parts, Range window, int targets, int samples) {
  return (window.first == 0 || (window.count > 0 && parts[0].row == kBeforeTile)) &&
         (window.first + window.count == targets || (window.count > 0 && parts[window.count - 1].row >= samples));
}

/// The part of sample `row` in a target; 0 or NaN for none.
__device__ __forceinline__ float share(const Part& part, int row) {
  return part.row == row ? 1.0f - part.weight : (part.row == row - 1 ? part.weight : 0.0f);
}

}  // namespace tmaops::ops::resample_backward::window_gather
