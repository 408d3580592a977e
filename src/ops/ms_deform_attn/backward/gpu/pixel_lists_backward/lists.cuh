// Samples listed by the pixel of their upper left corner: counting, placing, and what a list holds.
#pragma once

#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/batches.hpp"
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
  unsigned* ranks = nullptr;   // [item][sample]: its place in its list, of its part of the queries
  unsigned* bases = nullptr;   // [part][image][head][list]: samples before that part's; null when there is one part
  int part_queries = 0;        // of a part
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

template <Counting counting>
inline constexpr int kCountThreads = counting == Counting::in_shared_memory ? 1024 : kBackwardThreads;

/// Counts the samples of every list in global memory.
template <class Point>
__device__ __forceinline__ void count_in_global_memory(const BackwardCall& call, const Lists& lists) {
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

/// Of a level's lists.
struct Counts {
  unsigned of[kMostCountedBytes / sizeof(unsigned)];
};

/// The same where a level's counts fit in shared memory: one block per image, head, level and part of the queries, and
/// one addition in global memory per list of a block instead of one per sample.
template <class Point>
__device__ __forceinline__ void count_in_shared_memory(const BackwardCall& call, const Lists& lists) {
  unsigned(&counts)[kMostCountedBytes / sizeof(unsigned)] = device::dynamic_shared<Counts, kSite.smem>().of;
  const Call& in = call.inputs;
  const int l = static_cast<int>(blockIdx.y);
  const DeviceLevel& level = in.levels[l];
  const int count = (level.height + 1) * (level.width + 1);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kCountThreads<Counting::in_shared_memory>) counts[i] = 0;
  __syncthreads();

  const auto heads = static_cast<unsigned>(lists.images * in.heads);
  const unsigned part = blockIdx.x / heads;
  const unsigned head = blockIdx.x - part * heads;
  const unsigned image = head / static_cast<unsigned>(in.heads);
  const unsigned m = head - image * static_cast<unsigned>(in.heads);
  const auto points = static_cast<unsigned>(level.points);
  const unsigned first = part * static_cast<unsigned>(lists.part_queries);
  const unsigned end = min(first + static_cast<unsigned>(lists.part_queries), static_cast<unsigned>(in.queries));
  for (unsigned i = threadIdx.x; i < (end - first) * points; i += kCountThreads<Counting::in_shared_memory>) {
    const unsigned of = i / points;
    const unsigned q = first + of;
    const unsigned p = i - of * points;
    const std::int64_t at =
        in.locations.row(lists.first_image + image, q, m) + level.location_at + p * in.locations.point;
    const Footprint where = footprint(read_point<Point>(in.locations, at),
                                      read_point<Point>(in.locations, at + in.locations.axis), level, in.nearest);
    if (where.inside == 0) continue;
    const auto item = (image * static_cast<unsigned>(in.queries) + q) * static_cast<unsigned>(in.heads) + m;
    lists.ranks[item * static_cast<unsigned>(in.points) + static_cast<unsigned>(level.last_point) - points + p] =
        atomicAdd(counts + (where.row + 1) * (level.width + 1) + where.column + 1, 1u);
  }
  __syncthreads();

  const unsigned list = head * static_cast<unsigned>(lists.per_head) + static_cast<unsigned>(lists.first[l]);
  unsigned* bases = lists.bases + part * (heads * static_cast<unsigned>(lists.per_head)) + list;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kCountThreads<Counting::in_shared_memory>)
    if (counts[i] != 0) bases[i] = atomicAdd(lists.counts + list + i, counts[i]);
}

/// Counts the samples of every list. The order of arrival is their rank: it varies, and so does the order of a list.
template <class Point, Counting counting>
__global__ void __launch_bounds__(kCountThreads<counting>)
    count_samples(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists) {
  if constexpr (counting == Counting::in_shared_memory)
    count_in_shared_memory<Point>(call, lists);
  else
    count_in_global_memory<Point>(call, lists);
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
