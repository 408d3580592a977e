// Version 4: adds to vector_atomics_backward that nothing is added to the value's gradient atomically: samples are
// listed by pixel (integer counts instead of 4 D additions of f32 per sample), and a warp sums each pixel in registers,
// as integers: deterministic, whatever the order of the lists. The gradients of locations and weights are made on the
// way, and their kernel writes the lists.
#include <algorithm>
#include <numeric>

#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/backward/shared/item_order.cuh"
#include "ops/ms_deform_attn/backward/shared/vectors.cuh"
#include "ops/ms_deform_attn/backward/shared/warp_per_item.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

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

/// 2^lane_bits threads per item, 16 bytes of its channels each; one sample of the item per thread is worked out and
/// written by it, and its corners are read by all.
template <class Value, int lane_bits>
__global__ void __launch_bounds__(kBackwardThreads, sizeof(Value) == 2 && lane_bits > 2 ? 2 : 3)
    point_gradients(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists,
                    const ItemOrder order) {
  constexpr int kLanes = 1 << lane_bits;
  // Four samples at a time (two and more blocks: slower), two where a bf16's conversion takes the registers.
  constexpr int kMostBits = std::is_same_v<Value, __nv_bfloat16> ? 1 : 2;
  constexpr int kBatchBits = lane_bits < kMostBits ? lane_bits : kMostBits;
  constexpr int kBatch = 1 << kBatchBits;
  const Call& in = call.inputs;
  const int part = device::lane_index() & (kLanes - 1);
  const auto items = static_cast<unsigned>(lists.images * in.queries * in.heads);
  const unsigned first = (blockIdx.x * kBackwardWarps + static_cast<unsigned>(device::warp_index())) << (5 - lane_bits);
  if (first >= items) return;
  const unsigned number = first + (static_cast<unsigned>(device::lane_index()) >> lane_bits);
  const bool there = number < items;
  Item item = order.item(in, min(number, items - 1));
  const auto local = static_cast<unsigned>((item.n * in.queries + item.q) * in.heads + item.m);
  item.n += lists.first_image;
  const int d = part * device::kPerVector<Value>;
  const auto* value =
      reinterpret_cast<const uint4*>(static_cast<const Value*>(in.value.data) + in.value.at(item.n, 0, item.m) + d);
  const int pixel_step = static_cast<int>(in.value.row / device::kPerVector<Value>);

  float gradient[device::kPerVector<Value>];
  load_gradient<Value>(call, item, d, gradient);

  const std::int64_t location_row = in.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
  for (int l = 0; l < in.level_count; ++l) {
    const DeviceLevel& level = in.levels[l];
    const uint4* map = value + level.value_at / device::kPerVector<Value>;
    const int points = static_cast<int>(level.points);
    for (int p0 = 0; p0 < points; p0 += kLanes) {
      const int mine = p0 + part;
      const bool taken = there && mine < points;
      Point3 own;
      Footprint where;
      if (taken) {
        own = load_point<AnyType>(in, location_row + level.location_at + mine * in.locations.point,
                                  weight_row + level.weight_at + mine * in.weights.point);
        where = footprint(own.x, own.y, level, in.nearest);
        if (where.inside == 0) own.weight = 0;
      }
      if (where.inside != 0 && lists.ranks != nullptr) {
        const unsigned list = lists.at(in, item, l, level.width, where.row, where.column);
        const unsigned rank = __ldg(lists.ranks + local * static_cast<unsigned>(in.points) +
                                    static_cast<unsigned>(level.last_point - points + mine));
        const Listed entry{static_cast<int>(item.q), own.weight, where.across, where.down};
        device::store_16(lists.samples + __ldg(&lists.ranges[list].x) + rank, *reinterpret_cast<const uint4*>(&entry));
      }
      if (call.locations.data == nullptr && call.weights.data == nullptr) continue;

      // The first corner inside the level, and whether the other column and row are one further.
      const int corner_at = where.inside == 0
                                ? 0
                                : (max(where.row, 0) * level.width + max(where.column, 0)) << 2 |
                                      (where.has(0) && where.has(1) || where.has(2) && where.has(3) ? 1 : 0) |
                                      (where.has(0) && where.has(2) || where.has(1) && where.has(3) ? 2 : 0);
      float c[4] = {0, 0, 0, 0};
#pragma unroll 1
      for (int b = 0; b < kLanes; b += kBatch) {
        if (p0 + b >= points) break;
        float sums[kBatch][4];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int at = __shfl_sync(0xffffffffu, corner_at, b + i, kLanes);
          const uint4* from = map + static_cast<std::int64_t>(at >> 2) * pixel_step;
          const int right = (at & 1) != 0 ? pixel_step : 0;
          const int down = (at & 2) != 0 ? level.width * pixel_step : 0;
#pragma unroll
          for (int k = 0; k < 4; ++k)
            sums[i][k] = dot_vector<Value>(gradient, device::load_16(from + (k % 2 ? right : 0) + (k / 2 ? down : 0)));
        }
        float made[4];
        sum_transposed<kBatchBits, lane_bits>(sums, part, made);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (part >> kBatchBits == b >> kBatchBits) c[k] = made[k];
      }
      if (!taken) continue;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (!where.has(k)) c[k] = 0;
      write_point(call, item, l, mine, level, own.weight, where.inside != 0 ? point_sums(where, c) : PointSums{});
    }
  }
}

/// Sums of integers, the same for any order. A product is rounded to the unit by adding 3 * 2^51 to it: the sum's low
/// bits are then that integer. Exact, because a product of two f32 is, and stays below 2^50 units.
struct FixedTotals {
  static constexpr double kRounder = 6755399441055744.0;  // 3 * 2^51
  long long sums[kFour] = {};
  __device__ __forceinline__ void add(const float (&gradient)[kFour], float weight, double scale) {
    const double scaled = static_cast<double>(weight) * scale;
#pragma unroll
    for (int i = 0; i < kFour; ++i)
      sums[i] += __double_as_longlong(fma(scaled, static_cast<double>(gradient[i]), kRounder)) -
                 __double_as_longlong(kRounder);
  }
  __device__ __forceinline__ void merge(int offset) {
#pragma unroll
    for (long long& sum : sums) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  __device__ __forceinline__ float total(int i, double unit) const {
    return static_cast<float>(static_cast<double>(sums[i]) * unit);
  }
};

/// One warp's strip: pixels [begin, end) of a row of a level, for one image and head.
struct Strip {
  std::int64_t n = 0;
  std::int64_t m = 0;
  int l = 0;
  int row = 0;
  int begin = 0;
  int end = 0;
};

__device__ __forceinline__ Strip strip_at(const Call& in, const Lists& lists, int warp) {
  int order = 0;
  while (order + 1 < in.level_count && warp >= lists.strips[order + 1].first_warp) ++order;
  const LevelStrips& level = lists.strips[order];
  Strip strip;
  strip.l = level.level;
  const int local = warp - level.first_warp;
  const int height = in.levels[strip.l].height;
  const int strips = level.row_strips * height;
  const int head = local / strips;
  const int rest = local - head * strips;
  strip.row = rest / level.row_strips;
  strip.begin = (rest - strip.row * level.row_strips) * level.pixels;
  strip.end = min(strip.begin + level.pixels, in.levels[strip.l].width);
  const int heads = static_cast<int>(in.heads);
  strip.n = lists.first_image + head / heads;
  strip.m = head % heads;
  return strip;
}

/// Sample i of two lists, one behind the other, as its weight on the left and the right column of a row: that of the
/// second list's samples is their upper one, that of the first list's their lower one.
struct Shares {
  int query = 0;
  float left = 0;
  float right = 0;
};

__device__ __forceinline__ Shares share(const Listed* samples, unsigned i, const uint2& above, const uint2& here) {
  const unsigned upper = above.y - above.x;
  const uint4 words = device::load_16(samples + (i < upper ? above.x + i : here.x + (i - upper)));
  const float across = __uint_as_float(words.z);
  const float vertical = i < upper ? __uint_as_float(words.w) : 1 - __uint_as_float(words.w);
  const float weight = __uint_as_float(words.y);
  return {static_cast<int>(words.x), weight * (vertical * (1 - across)), weight * (vertical * across)};
}

/// A pixel whose samples' gradients or weights are not all finite, for integer sums: those terms are added in f32,
/// where infinities and NaN add up to the same in any order. `left_...`: the lists of the column to the left, whose
/// samples' right corners lie here. Rare, so each thread goes through the lists alone.
template <class Gradient>
__device__ __forceinline__ float4 sum_not_finite(const Listed* samples, const Gradient* rows, std::int64_t row_step,
                                                 uint2 left_above, uint2 left_here, uint2 above, uint2 here,
                                                 double scale, double unit) {
  FixedTotals finite;
  float others[kFour] = {};
  const unsigned left = left_above.y - left_above.x + left_here.y - left_here.x;
  const unsigned count = left + above.y - above.x + here.y - here.x;
#pragma unroll 1
  for (unsigned i = 0; i < count; ++i) {
    const Shares shares = i < left ? share(samples, i, left_above, left_here) : share(samples, i - left, above, here);
    const float weight = i < left ? shares.right : shares.left;
    float gradient[kFour];
    load_four(rows + shares.query * row_step, gradient);
#pragma unroll
    for (int k = 0; k < kFour; ++k) {
      const float term = weight * gradient[k];
      if (fabsf(term) <= 3.402823466e38f) continue;
      others[k] += term;
      gradient[k] = 0;
    }
    if (fabsf(weight) <= 3.402823466e38f) finite.add(gradient, weight, scale);
  }
  return {finite.total(0, unit) + others[0], finite.total(1, unit) + others[1], finite.total(2, unit) + others[2],
          finite.total(3, unit) + others[3]};
}

/// Writes four channels of a pixel; `vectors`: by one store.
template <class To>
__device__ __forceinline__ void write_four(const ChannelRows& to, bool vectors, std::int64_t at,
                                           const float (&totals)[kFour]) {
  To* made = static_cast<To*>(const_cast<void*>(to.data)) + at;
  if (vectors) return store_four(made, totals);
#pragma unroll
  for (int i = 0; i < kFour; ++i) made[i * to.channel] = device::narrow<To>(totals[i]);
}

/// Where the sums go.
struct SumsTo {
  ChannelRows rows{};
  DType dtype = DType::f32;
  bool vectors = false;  // four channels lie next to each other, at a multiple of their bytes
  int lane_bits = 0;     // log2 of the threads that read one row of four channels each
  int warps = 0;
};

/// One warp per strip. It goes along the columns of upper left corners; a sample adds its left share to that column and
/// its right share to the next, so that every list is read twice in all: for the row of its samples and the one below.
template <class Gradient>
__global__ void __launch_bounds__(kBackwardThreads)
    sum_pixels(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists,
               const __grid_constant__ SumsTo to) {
  const Call& in = call.inputs;
  const int warp = static_cast<int>(blockIdx.x) * kBackwardWarps + device::warp_index();
  if (warp >= to.warps) return;
  const int lane = device::lane_index();
  const int d = (lane & ((1 << to.lane_bits) - 1)) * kFour;
  const unsigned group = static_cast<unsigned>(lane) >> to.lane_bits;
  const unsigned groups = 32u >> to.lane_bits;
  const Strip strip = strip_at(in, lists, warp);
  if (strip.n >= lists.first_image + lists.images) return;  // fewer images than at other times
  const DeviceLevel& level = in.levels[strip.l];
  const Gradient* rows = static_cast<const Gradient*>(in.output.data) + in.output.at(strip.n, 0, strip.m) + d;
  const int exponent = fixed_exponent(call);
  const double scale = scalbn(1.0, exponent);
  const double unit = scalbn(1.0, -exponent);

  // Thread i of the warp holds the ranges of column begin - 1 + i.
  const Item item{strip.n, 0, strip.m};
  const int mine = min(strip.begin - 1 + lane, strip.end - 1);
  const uint2 own_above = lists.ranges[lists.at(in, item, strip.l, level.width, strip.row - 1, mine)];
  const uint2 own_here = lists.ranges[lists.at(in, item, strip.l, level.width, strip.row, mine)];
  const auto range = [](const uint2& own, int i) {
    return uint2{__shfl_sync(0xffffffffu, own.x, i), __shfl_sync(0xffffffffu, own.y, i)};
  };

  FixedTotals next;
  bool odd_next = false;
  for (int column = strip.begin - 1; column < strip.end; ++column) {
    const uint2 above = range(own_above, column - strip.begin + 1);
    const uint2 here = range(own_here, column - strip.begin + 1);
    const unsigned count = above.y - above.x + here.y - here.x;
    FixedTotals current = next;
    next = FixedTotals{};
    bool odd = odd_next;
    odd_next = false;
    for (unsigned i = group; i < count; i += 2 * groups) {
      const bool second = i + groups < count;
      Shares shares[2] = {share(lists.samples, i, above, here),
                          share(lists.samples, second ? i + groups : i, above, here)};
      float gradient[2][kFour];
#pragma unroll
      for (int k = 0; k < 2; ++k) load_four(rows + shares[k].query * in.output.row, gradient[k]);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        if (k == 1 && !second) break;
        float zero = fmaf(shares[k].left, 0.0f, shares[k].right * 0.0f);
#pragma unroll
        for (const float one : gradient[k]) zero = fmaf(one, 0.0f, zero);
        odd_next = odd_next || zero != 0.0f;
        current.add(gradient[k], shares[k].left, scale);
        next.add(gradient[k], shares[k].right, scale);
      }
    }
    if (column < strip.begin) continue;
    for (unsigned offset = 1u << to.lane_bits; offset < 32; offset *= 2) current.merge(static_cast<int>(offset));
    float totals[kFour];
#pragma unroll
    for (int i = 0; i < kFour; ++i) totals[i] = current.total(i, unit);
    if (__any_sync(0xffffffffu, odd || odd_next)) {
      const int left = column - strip.begin;
      const float4 made = sum_not_finite(lists.samples, rows, in.output.row, range(own_above, left),
                                         range(own_here, left), above, here, scale, unit);
      totals[0] = made.x, totals[1] = made.y, totals[2] = made.z, totals[3] = made.w;
    }
    if (group == 0) {
      const std::int64_t s = level.first_pixel + static_cast<std::int64_t>(strip.row) * level.width + column;
      const std::int64_t at = to.rows.at(strip.n, s, strip.m) + d * to.rows.channel;
      if (to.dtype == DType::f32)
        write_four<float>(to.rows, to.vectors, at, totals);
      else if (to.dtype == DType::f16)
        write_four<__half>(to.rows, to.vectors, at, totals);
      else
        write_four<__nv_bfloat16>(to.rows, to.vectors, at, totals);
    }
  }
}

namespace {

/// Samples a warp reads: a strip's first list is read for its right shares alone, so longer strips read less, but the
/// last warps end later.
constexpr double kVisitsPerStrip = 2048;
constexpr int kMostStripPixels = 16;  // less than a warp's threads, which hold the ranges of a strip
constexpr int kPlacedPerThread = 8;
constexpr int kFewestCountBits = 10;  // so that a term stays below 2^50 units, as FixedTotals needs

constexpr std::int64_t kSamplesAtATime = 1 << 23;  // 160 MB of lists: an encoder's batch in one go
std::int64_t samples_per_image(const ms_deform_attn::Problem& problem) {
  return problem.queries * problem.heads * problem.points;
}
std::int64_t images_at_a_time(const ms_deform_attn::Problem& problem) {
  return std::clamp<std::int64_t>(kSamplesAtATime / std::max<std::int64_t>(samples_per_image(problem), 1), 1,
                                  std::max<std::int64_t>(problem.batch, 1));
}
std::int64_t lists_per_head(const ms_deform_attn::Problem& problem) {
  std::int64_t lists = 0;
  for (const ms_deform_attn::Level& level : problem.levels) lists += (level.height + 1) * (level.width + 1);
  return lists;
}

/// What the kernels of one batch of images take.
struct Setup {
  BackwardCall call{};
  ItemOrder order{};
  Lists lists{};
  SumsTo to{};
  std::int64_t images = 1;        // at a time
  std::size_t counted_bytes = 0;  // Lists::total and ::counts
};

/// Levels with the longest lists first: their strips take longest.
void share_out(const ms_deform_attn::Problem& problem, Setup& made) {
  const auto samples = [&](const ms_deform_attn::Level& level) {
    return static_cast<double>(level.points * problem.queries) / static_cast<double>(level.height * level.width);
  };
  std::vector<std::size_t> order(problem.levels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t l) { return samples(problem.levels[l]); });
  int first = 0;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const ms_deform_attn::Level& level = problem.levels[l];
    made.lists.first[l] = first;
    first += static_cast<int>((level.height + 1) * (level.width + 1));
  }
  made.lists.per_head = first;
  int warps = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ms_deform_attn::Level& level = problem.levels[order[i]];
    const double pixels = kVisitsPerStrip / std::max(2 * samples(level), 1.0);
    LevelStrips& strips = made.lists.strips[i];
    strips.level = static_cast<int>(order[i]);
    strips.pixels = std::clamp(static_cast<int>(pixels), 1, kMostStripPixels);
    strips.row_strips = static_cast<int>((level.width + strips.pixels - 1) / strips.pixels);
    strips.first_warp = warps;
    warps += static_cast<int>(made.images * problem.heads * level.height * strips.row_strips);
  }
  made.to.warps = warps;
}

/// Gives the lists their scratch memory.
void allocate(Work& work, const Problem& problem, Setup& made) {
  const ms_deform_attn::Problem& forward = problem.forward;
  const std::int64_t lists = made.images * forward.heads * made.lists.per_head;
  const std::int64_t samples = made.images * samples_per_image(forward);
  const auto align = [](std::int64_t bytes) { return static_cast<std::size_t>((bytes + 15) / 16 * 16); };
  made.counted_bytes = align(16 + lists * 4);
  const std::size_t ranges_bytes = align(lists * 8);
  const std::size_t samples_bytes = static_cast<std::size_t>(samples) * sizeof(Listed);
  const std::size_t ranks_bytes = static_cast<std::size_t>(samples) * 4;
  unsigned char* at = work.allocate(16 + made.counted_bytes + ranges_bytes + samples_bytes + ranks_bytes);
  made.call.largest = reinterpret_cast<unsigned*>(at);
  made.call.count_bits = std::max(count_bits(forward), kFewestCountBits);
  made.lists.total = reinterpret_cast<unsigned*>(at + 16);
  made.lists.counts = reinterpret_cast<unsigned*>(at + 32);
  at += 16 + made.counted_bytes;
  made.lists.ranges = reinterpret_cast<uint2*>(at);
  at += ranges_bytes;
  made.lists.samples = reinterpret_cast<Listed*>(at);
  made.lists.ranks = reinterpret_cast<unsigned*>(at + samples_bytes);
}

/// The kernels of one batch of images, whose lists `lists` are.
template <class Value, class Point>
void add_batch(Work& work, const Setup& setup, const Lists& lists, int bits) {
  const Call& in = setup.call.inputs;
  const bool sums = lists.ranges != nullptr;
  const auto blocks = [](std::int64_t count, std::int64_t each) -> LaunchShape {
    return {.grid = static_cast<unsigned>((count + each - 1) / each), .block = kBackwardThreads};
  };
  if (sums) {
    work.add_memset(lists.total, 0, setup.counted_bytes);
    const std::int64_t samples = lists.images * in.queries * in.heads * in.points;
    if (samples > 0) work.add(count_samples<Point>, blocks(samples, kBackwardThreads), setup.call, lists);
    const auto entries = static_cast<unsigned>(lists.images * in.heads * lists.per_head);
    work.add(place_lists<kPlacedPerThread>, blocks(entries, kPlacedPerThread * kBackwardThreads), lists, entries);
  }
  if (in.items > 0)
    with_constant<0, 5>(bits, [&]<int lane_bits>(Constant<lane_bits>) {
      work.add(point_gradients<Value, lane_bits>,
               one_group_each(lists.images * in.queries * in.heads, kBackwardThreads, lane_bits, false), setup.call,
               lists, setup.order);
    });
  if (!sums) return;
  auto* sum = setup.call.grad_output == DType::f32 ? sum_pixels<float> : sum_pixels<Value>;
  work.add(sum, blocks(setup.to.warps, kBackwardWarps), setup.call, lists, setup.to);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  const ms_deform_attn::Problem& forward = problem.forward;
  if (!problem.deterministic) return Support::no("sums integers, for deterministic gradients");
  if (Support support = supports_items(problem); !support) return support;
  if (Support support = supports_vectors(forward); !support) return support;
  if (forward.channels % kFour != 0 || forward.channels > kFour * device::kWarpThreads)
    return Support::no("needs at most " + std::to_string(kFour * device::kWarpThreads) + " channels");
  constexpr std::int64_t kMost = INT32_MAX;
  const std::int64_t images = images_at_a_time(forward);
  if (images * samples_per_image(forward) > kMost - kBackwardThreads)
    return Support::no("needs less than 2^31 samples per image");
  if (forward.length > kMost / 4 ||
      images * forward.heads > kMost / std::max<std::int64_t>(lists_per_head(forward), 1) / 2)
    return Support::no("needs less than 2^29 pixels per image, and less than 2^30 pixels times heads at a time");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const ms_deform_attn::Problem& forward = problem.forward;
  Work work(kSite, forward.device, arguments.workspace);
  Setup made;
  made.call = backward_call(problem, arguments);
  made.order = item_order(forward);
  const bool sums = problem.grad_value && forward.batch * forward.length * forward.heads * forward.channels > 0;
  if (!sums && made.call.inputs.items == 0) return work;
  const int bits = lane_bits(forward);
  if (sums) {
    made.images = images_at_a_time(forward);
    share_out(forward, made);
    allocate(work, problem, made);
    const ConstTensorView value = arguments.gradients.value;
    made.to.rows = value_rows(value);
    made.to.dtype = value.dtype;
    made.to.vectors = value.strides[3] == 1 && row_alignment(value) >= kFour * static_cast<int>(size_of(value.dtype));
    while (forward.channels > kFour << made.to.lane_bits) ++made.to.lane_bits;
  }
  with_types(forward, [&]<class Value, class Point>(Value*, Point*) {
    if (made.call.largest != nullptr) {
      work.add_memset(made.call.largest, 0, 2 * sizeof(unsigned));
      if (made.call.inputs.items > 0)
        work.add(find_largest<Value>, rounds(made.call.inputs.items * device::kWarpThreads, forward.device), made.call);
    }
    Lists lists = made.lists;
    for (; lists.first_image < forward.batch; lists.first_image += made.images) {
      lists.images = static_cast<int>(std::min(made.images, forward.batch - lists.first_image));
      add_batch<Value, Point>(work, made, lists, bits);
    }
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
