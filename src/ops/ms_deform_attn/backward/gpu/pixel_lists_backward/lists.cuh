// Samples listed by the pixel of their upper left corner: counting, placing, and what a list holds.
#pragma once

#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/backward/shared/footprint.cuh"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// What the value's gradient needs of a sample.
struct __align__(16) Listed {
  int query = 0;
  float weight = 0;
  float across = 0;  // from the left to the right column
  float down = 0;
};

/// How a level's pixels are shared out: a strip is the part of a row of pixels that one warp sums.
struct LevelStrips {
  int level = 0;
  int pixels = 1;      // of a strip
  int row_strips = 0;  // strips of a row
  int first_warp = 0;  // of this level's strips, those of the levels before it included
};

/// The lists of some images at a time. A level has one for every place an upper left corner can have: rows -1 ...
/// height - 1, columns -1 ... width - 1.
struct Lists {
  unsigned* total = nullptr;   // samples placed so far
  unsigned* counts = nullptr;  // [image][head][list]
  uint2* ranges = nullptr;     // [image][head][list]: begin and end in `samples`
  unsigned* ranks = nullptr;   // [item][sample]: its place in its list
  Listed* samples = nullptr;
  int per_head = 0;
  int images = 0;
  std::int64_t first_image = 0;
  int first[kInlineLevels] = {};      // list of row -1 and column -1 of each level
  LevelStrips strips[kInlineLevels];  // levels with the longest lists first

  __device__ __forceinline__ std::int64_t first_item(const Call& call) const {
    return first_image * call.queries * call.heads;
  }
  /// Number of the list of (row, column) of a level of this width, for an item.
  __device__ __forceinline__ unsigned at(const Call& call, const Item& item, int l, int width, int row,
                                         int column) const {
    const auto head = static_cast<unsigned>((item.n - first_image) * call.heads + item.m);
    return head * static_cast<unsigned>(per_head) +
           static_cast<unsigned>(first[l] + (row + 1) * (width + 1) + column + 1);
  }
};

/// Counts the samples of every list. The order of arrival is their rank: it varies, and so does the order of a list.
template <class Point>
__global__ void __launch_bounds__(kBackwardThreads)
    count_samples(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists) {
  const Call& in = call.inputs;
  const auto points = static_cast<unsigned>(in.points);
  const unsigned index = blockIdx.x * kBackwardThreads + threadIdx.x;
  const unsigned local = index / points;
  if (local >= static_cast<unsigned>(lists.images * in.queries * in.heads)) return;
  const int s = static_cast<int>(index - local * points);
  const Item item = item_at(in, lists.first_item(in) + local);
  int l = 0;
  while (s >= in.levels[l].last_point) ++l;
  const DeviceLevel& level = in.levels[l];
  const std::int64_t p = s - (level.last_point - level.points);
  const std::int64_t location_at =
      in.locations.row(item.n, item.q, item.m) + level.location_at + p * in.locations.point;
  const Footprint where =
      footprint(read_point<Point>(in.locations, location_at),
                read_point<Point>(in.locations, location_at + in.locations.axis), level, in.nearest);
  if (where.inside != 0)
    lists.ranks[index] = atomicAdd(lists.counts + lists.at(in, item, l, level.width, where.row, where.column), 1u);
}

/// Gives every list its range. A block takes its part of `samples` when it comes to it: where a list lies varies, too.
template <int per_thread>
__global__ void __launch_bounds__(kBackwardThreads)
    place_lists(const __grid_constant__ Lists lists, const unsigned count) {
  auto& warps = device::block_shared<unsigned[kBackwardWarps]>();
  auto& base = device::block_shared<unsigned>();
  const unsigned first = (blockIdx.x * kBackwardThreads + threadIdx.x) * per_thread;
  unsigned sizes[per_thread];
  unsigned own = 0;
#pragma unroll
  for (unsigned i = 0; i < per_thread; ++i) {
    sizes[i] = first + i < count ? lists.counts[first + i] : 0;
    own += sizes[i];
  }
  unsigned before = own;  // of the warp's threads up to this one
  const int lane = device::lane_index();
#pragma unroll
  for (int offset = 1; offset < device::kWarpThreads; offset *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, before, offset);
    if (lane >= offset) before += other;
  }
  if (lane == device::kWarpThreads - 1) warps[threadIdx.x / device::kWarpThreads] = before;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (unsigned& warp : warps) {
      const unsigned size = warp;
      warp = sum;
      sum += size;
    }
    base = atomicAdd(lists.total, sum);
  }
  __syncthreads();
  unsigned at = base + warps[threadIdx.x / device::kWarpThreads] + before - own;
#pragma unroll
  for (unsigned i = 0; i < per_thread; ++i) {
    if (first + i >= count) break;
    lists.ranges[first + i] = {at, at + sizes[i]};
    at += sizes[i];
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
