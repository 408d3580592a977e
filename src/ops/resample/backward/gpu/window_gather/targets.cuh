// Which targets lie around a tile of samples, and what each gives to the two samples around it.
#pragma once

#include "ops/resample/backward/shared/samples.cuh"
#include "ops/resample/shared/bracket.cuh"

namespace tmaops::ops::resample_backward::window_gather {

/// The tile of a block.
struct SampleTile {
  std::int64_t b;
  int begin, end;  // samples
  int low, held;   // the timestamps around them: [low, low + held)
  int samples, targets;

  /// Interval k, 0 to count(), is that from sample begin - 1 + k to the next. The first and the last one of a
  /// trajectory have the targets outside of it, too: a tile with others has targets in front of its first one, or
  /// behind its last.
  __device__ __forceinline__ int count() const { return end - begin; }
  __device__ __forceinline__ bool has_front() const { return begin > 1; }
  __device__ __forceinline__ bool has_back() const { return end < samples - 1; }
};

template <class Time>
struct TileTargets {
  static constexpr int kFlight = 24 / sizeof(Time);  // loads of a thread before it uses the first

  const Call& call;
  const SampleTile& tile;
  Time* samples;  // timestamps in shared memory: those of the tile, behind them the window of targets
  Time* targets;

  __device__ TileTargets(const Call& of, const SampleTile& for_tile, void* times)
      : call(of), tile(for_tile), samples(static_cast<Time*>(times)), targets(samples + for_tile.held) {}

  /// Brings the window to shared memory, with `and_samples` also the timestamps of the tile.
  __device__ __forceinline__ void stage(Range window, bool and_samples) const {
    const Timeline& line = call.line;
    const auto* from = line.source.at<const Time>(tile.b, tile.low);
    const int end = tile.held + window.count;
    const auto threads = static_cast<int>(blockDim.x);
    for (int base = (and_samples ? 0 : tile.held) + static_cast<int>(threadIdx.x); base < end;
         base += kFlight * threads) {
      Time time[kFlight];
#pragma unroll
      for (int k = 0; k < kFlight; ++k)
        if (const int i = base + k * threads; i < end)
          time[k] = i < tile.held ? device::load_now(from + i * line.source.row_stride)
                                  : target_time<Time>(line, tile.b, window.first + i - tile.held);
#pragma unroll
      for (int k = 0; k < kFlight; ++k)
        if (const int i = base + k * threads; i < end) samples[i] = time[k];
    }
  }

  /// Whether the targets of the window are in order, as far as this thread looks.
  __device__ __forceinline__ bool in_order(Range window) const {
    bool ordered = true;
    for (auto i = static_cast<int>(threadIdx.x); i < window.count; i += static_cast<int>(blockDim.x))
      ordered = ordered && targets[i] <= targets[min(i + 1, window.count - 1)];
    return ordered;
  }

  /// Whether a window of targets in order has all that matter to the tile.
  __device__ __forceinline__ bool is_complete(Range window) const {
    const int last = window.count - 1;
    const bool front = window.first == 0 || (last >= 0 && tile.has_front() && targets[0] < samples[0]);
    const bool back = window.first + window.count == tile.targets ||
                      (last >= 0 && tile.has_back() && targets[last] >= samples[tile.held - 1]);
    return front && back;
  }

  /// That window; by all threads of a warp together.
  __device__ __forceinline__ Range range() const {
    const auto before = [&](Time time) {
      return count_by_warp(tile.targets, [&](int t) { return target_time<Time>(call.line, tile.b, t) < time; });
    };
    const int first = tile.has_front() ? before(samples[0]) : 0;
    const int end = tile.has_back() ? before(samples[tile.held - 1]) : tile.targets;
    return {first, max(end - first, 0)};
  }

  /// Leaves where the targets of every interval begin in a complete window, at the end where the last ones end, and
  /// what every target gives to the later sample of its interval: the earlier one gets 1 - weight; NaN: nothing.
  __device__ __forceinline__ void locate(Range window, int* begins, float* weights) const {
    const Timeline& line = call.line;
    const bool plain = line.outside == Outside::hold && line.max_gap == 0 && line.max_gap_ns == 0 &&
                       call.interpolation == Interpolation::linear;
    const int most = tile.samples - 1;
    const int each = (tile.count() + static_cast<int>(blockDim.x)) / static_cast<int>(blockDim.x);
    int k = static_cast<int>(threadIdx.x) * each;
    const int end = min(k + each, tile.count() + 1);
    if (k >= end) return;
    int s = tile.begin - 1 + k;
    int j = s <= 0 ? 0 : window.count;
    if (s > 0 && s < most) j = first_target(window.count, samples[s - tile.low]);
    for (; k < end; ++k, ++s) {
      begins[k] = j;
      if (s < 0 || (s >= most && most > 0)) continue;
      const Time x = samples[s - tile.low];
      const Time next = samples[min(s + 1, most) - tile.low];
      for (; j < window.count; ++j) {
        const Time q = targets[j];
        if (s + 1 < most && q >= next) break;
        float weight;
        if (plain) {
          weight = static_cast<float>(difference(q, x)) / static_cast<float>(difference(next, x));
          weight = weight < kLeastWeight ? kLeastWeight : (weight > kMostWeight ? kMostWeight : weight);
          if (q >= next) weight = 1.0f;
          if (q <= x || most == 0) weight = 0.0f;
        } else {
          const Place<int> at = resolve(call.interpolation, place(line, tile.samples, s, x, next, q));
          weight = at.row > s ? 1.0f : at.weight;  // the weight of a row is 0 then
        }
        weights[j] = weight;
      }
    }
    if (k == tile.count() + 1) begins[k] = j;
  }

 private:
  /// The first of the window's targets that is not before `time`.
  __device__ __forceinline__ int first_target(int count, Time time) const {
    const auto at = [&](int i) { return targets[i]; };
    int j = 0;
    if (count >= 4) {
      const auto span = static_cast<float>(difference(at(count - 1), at(0)));
      const float pace = __fdividef(static_cast<float>(count - 1), span);
      const float guess = static_cast<float>(difference(time, at(0))) * pace;
      const auto most = static_cast<float>(count);
      j = find_near(at, count, static_cast<int>(fminf(fmaxf(guess, -most), most)) - 1, pace, time).i;
    }
    while (j < count && at(j) < time) ++j;
    while (j > 0 && !(at(j - 1) < time)) --j;
    return j;
  }
};

}  // namespace tmaops::ops::resample_backward::window_gather
