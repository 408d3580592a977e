// A sample as kernels that read 16 bytes per thread take it: one address inside the map, four weights, no branches.
#pragma once

#include "device/warp.cuh"
#include "ops/ms_deform_attn/cuda/sample.cuh"

namespace tmaops::ops::ms_deform_attn::cuda {

/// Reads `count` words next to each other, 16 bytes at a time where there are as many.
template <int count>
__device__ __forceinline__ void load_words(std::uint32_t (&to)[count], const void* from) {
  if constexpr (count == 1) {
    to[0] = __ldg(static_cast<const std::uint32_t*>(from));
  } else if constexpr (count == 2) {
    const uint2 piece = __ldg(static_cast<const uint2*>(from));
    to[0] = piece.x, to[1] = piece.y;
  } else {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const uint4 piece = device::load_16(static_cast<const std::uint32_t*>(from) + i);
      to[i] = piece.x, to[i + 1] = piece.y, to[i + 2] = piece.z, to[i + 3] = piece.w;
    }
  }
}

/// Element `i` of 32-bit words that hold T.
template <class T, int count>
__device__ __forceinline__ float element(const std::uint32_t (&words)[count], int i) {
  if constexpr (sizeof(T) == 4)
    return __uint_as_float(words[i]);
  else if constexpr (std::is_same_v<T, __half>)
    return __half2float(__ushort_as_half(static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16))));
  else
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}

template <class Point>
__device__ __forceinline__ Point3 load_point(const Call& call, std::int64_t location_at, std::int64_t weight_at) {
  const float weight = read_point<Point>(call.weights, weight_at);
  if constexpr (std::is_same_v<Point, __half>) {
    const auto pair =
        __ldg(reinterpret_cast<const __half2*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {__low2float(pair), __high2float(pair), weight};
  } else if constexpr (std::is_same_v<Point, __nv_bfloat16>) {
    const auto pair =
        __ldg(reinterpret_cast<const __nv_bfloat162*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {__low2float(pair), __high2float(pair), weight};
  } else if constexpr (std::is_same_v<Point, float>) {
    const auto pair =
        __ldg(reinterpret_cast<const float2*>(static_cast<const Point*>(call.locations.data) + location_at));
    return {pair.x, pair.y, weight};
  } else {
    return {read_point<Point>(call.locations, location_at), read_point<Point>(call.locations, location_at + 1), weight};
  }
}

/// Weights of pixels `base` and `base + 1`, both inside a level of at least two pixels a side; in a level of one pixel
/// the second weight is 0. What lies outside has weight 0.
struct Pair {
  int base = 0;
  float low = 0;
  float high = 0;
};

__device__ __forceinline__ Pair inside(const Side& side, int size) {
  Pair pair;
  pair.base = min(max(side.first, 0), max(size - 2, 0));
  const int moved = side.first - pair.base;  // -1 at the first border, 1 at the last one
  pair.low = moved == 0 ? side.low : moved < 0 ? side.high : 0.0f;
  pair.high = moved == 0 ? (size > 1 ? side.high : 0.0f) : moved > 0 ? side.low : 0.0f;
  return pair;
}

/// Pixel (row, column) of the level and the three next to it, with bilinear times attention weights.
struct Corners {
  int row = 0;
  int column = 0;
  float weight[4] = {0, 0, 0, 0};  // upper left, upper right, lower left, lower right
};

/// A skipped sample has four weights of 0 and stays inside the level.
__device__ __forceinline__ Corners corners_of(const Point3& point, int height, int width, bool nearest) {
  Side across;
  Side down;
  bool taken = false;
  if (nearest) {
    taken = locate_nearest(point.x, width, across.first) && locate_nearest(point.y, height, down.first);
    across.low = 1;
    down.low = 1;
  } else {
    taken = locate(point.x, width, across);
    taken = locate(point.y, height, down) && taken;
  }
  const Pair columns = inside(across, width);
  const Pair rows = inside(down, height);
  const float upper = taken ? point.weight * rows.low : 0.0f;
  const float lower = taken ? point.weight * rows.high : 0.0f;
  Corners corners;
  corners.row = taken ? rows.base : 0;
  corners.column = taken ? columns.base : 0;
  corners.weight[0] = upper * columns.low;
  corners.weight[1] = upper * columns.high;
  corners.weight[2] = lower * columns.low;
  corners.weight[3] = lower * columns.high;
  return corners;
}

/// One side of a sample as the nearest place inside the level: pixels `base` and `base + 1` with weights 1 - part and
/// part, both times `kept`, the share of the sample that lies inside. Skipped samples, infinite and NaN locations keep
/// 0.
struct Place {
  int base = 0;
  float part = 0;
  float kept = 0;
};

__device__ __forceinline__ Place place(float location, int size) {
  const float at = fmaf(location, static_cast<float>(size), -0.5f);
  const float inside = fminf(fmaxf(at, 0.0f), static_cast<float>(size - 1));
  Place result;
  result.base = min(static_cast<int>(inside), max(size - 2, 0));
  result.part = inside - static_cast<float>(result.base);
  result.kept = fmaxf(1.0f - fabsf(at - inside), 0.0f);
  return result;
}

/// A sample in four words: where its upper left pixel lies behind [n, 0, m, 0] in units of 16 bytes, the weight of the
/// right column, and the attention weights of the two rows.
struct alignas(16) Record {
  int offset;
  float part;
  float upper;
  float lower;
};

template <class Value>
__device__ __forceinline__ Record record_of(const Call& call, const DeviceLevel& level, const Point3& point) {
  Place across;
  Place down;
  if (call.nearest) {
    const bool taken =
        locate_nearest(point.x, level.width, across.base) && locate_nearest(point.y, level.height, down.base);
    if (!taken) across.base = down.base = 0;
    across.kept = down.kept = taken ? 1.0f : 0.0f;
    // The four pixels of weight 0 beside and below the sample must lie inside the level.
    across.part = across.base > max(level.width - 2, 0) ? 1.0f : 0.0f;
    down.part = down.base > max(level.height - 2, 0) ? 1.0f : 0.0f;
    across.base -= static_cast<int>(across.part);
    down.base -= static_cast<int>(down.part);
  } else {
    across = place(point.x, level.width);
    down = place(point.y, level.height);
  }
  const float weight = point.weight * (across.kept * down.kept);
  Record record;
  record.offset = static_cast<int>(level.value_at / kPerVector<Value>) +
                  (down.base * level.width + across.base) * static_cast<int>(call.value.row / kPerVector<Value>);
  record.part = across.part;
  record.lower = weight * down.part;
  record.upper = fmaf(-weight, down.part, weight);
  return record;
}

/// Where a level lies behind [n, 0, m, 0], in units of 16 bytes. Steps are 0 where there is no second pixel.
struct Map {
  int start = 0;
  int right = 0;
  int down = 0;
};

template <class Value>
__device__ __forceinline__ Map map_of(const Call& call, const DeviceLevel& level) {
  const int pixel = static_cast<int>(call.value.row / kPerVector<Value>);
  return {static_cast<int>(level.value_at / kPerVector<Value>), level.width > 1 ? pixel : 0,
          level.height > 1 ? level.pitch * pixel : 0};
}
template <class Value>
__device__ __forceinline__ int offset_of(const Call& call, const DeviceLevel& level, const Corners& corners) {
  return static_cast<int>(level.value_at / kPerVector<Value>) +
         (corners.row * level.pitch + corners.column) * static_cast<int>(call.value.row / kPerVector<Value>);
}

/// Whether a sum may have met 0 * infinity, or a value that is not finite: then the definition decides.
template <int count>
__device__ __forceinline__ bool all_finite(const float (&sum)[count]) {
  float zero = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) zero = fmaf(sum[i], 0.0f, zero);
  return zero == 0.0f;
}

/// Of eight 16-bit values. What only the rounding made infinite does not count as finite.
template <class Value>
__device__ __forceinline__ bool all_finite(const uint4& packed) {
  using Two = std::conditional_t<std::is_same_v<Value, __half>, __half2, __nv_bfloat162>;
  const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
  const std::uint32_t zeros = 0;
  const Two times = *reinterpret_cast<const Two*>(&zeros);
  Two zero = times;
#pragma unroll
  for (const std::uint32_t& word : words) zero = __hfma2(*reinterpret_cast<const Two*>(&word), times, zero);
  return (*reinterpret_cast<const std::uint32_t*>(&zero) & 0x7fff7fffu) == 0;
}

/// The channels d, d + 1, ... of an item by the definition: weights of 0 do not touch what they multiply. Rare.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void sum_exactly(const AnyCall& call, const Item& item, int d,
                                            float (&sum)[kPerVector<Value>]) {
#pragma unroll 1
  for (int i = 0; i < kPerVector<Value>; ++i) {
    const float exact = sum_channel<Value, Point>(call, item, d + i);
#pragma unroll
    for (int k = 0; k < kPerVector<Value>; ++k)
      if (k == i) sum[k] = exact;
  }
}

/// Stores 16 bytes of channels; sums that are not finite are made again by the definition.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void store_sums(const AnyCall& call, const Item& item, int d,
                                           float (&sum)[kPerVector<Value>]) {
  if (!all_finite(sum)) sum_exactly<Value, Point>(call, item, d, sum);
  auto* to = static_cast<Value*>(const_cast<void*>(call.output.data)) + call.output.at(item.n, item.q, item.m) + d;
  device::store_16_streaming(to, pack_vector<Value>(sum));
}

/// log2 of the threads that read one pixel of a head together, 16 bytes each; -1 when its channels are no such power of
/// two.
inline int lane_bits(const Problem& problem) {
  const std::int64_t bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype));
  for (int bits = 0; 1 << bits <= device::kWarpThreads; ++bits)
    if (bytes == 16 << bits) return bits;
  return -1;
}

/// How items are dealt to blocks, so that a block finds what its queries look at in the L1: each block works on
/// 2^head_bits heads of `each` queries of one image, or of all images where an image has few.
struct Deal {
  std::int64_t rows = 0;  // queries of an image, or of all images
  unsigned blocks = 0;    // for these queries and heads
  unsigned each = 0;
  int head_bits = 0;
  bool by_image = false;
};

/// At most `most` queries per block, and all images together where one has fewer than that.
inline Deal deal_items(const Problem& problem, std::int64_t most, int head_bits) {
  const bool by_image = problem.queries >= most;
  Deal deal{.rows = by_image ? problem.queries : problem.batch * problem.queries, .head_bits = head_bits};
  deal.blocks = static_cast<unsigned>((deal.rows + most - 1) / most);
  deal.each = static_cast<unsigned>((deal.rows + deal.blocks - 1) / deal.blocks);
  deal.by_image = by_image;
  return deal;
}
inline dim3 grid_of(const Problem& problem, const Deal& deal) {
  return {static_cast<unsigned>(deal.blocks * (problem.heads >> deal.head_bits) * (deal.by_image ? problem.batch : 1))};
}

/// log2 of the heads that neighbouring threads work on: their pixels fill 128 bytes, so that eight threads read
/// different banks of the L1 whatever the lines (enc/detr: 133 us, 144 with one head).
inline int bank_bits(const Problem& problem, int lane_bits) {
  int bits = 0;
  while (lane_bits + bits < 3 && problem.heads % (2 << bits) == 0) ++bits;
  return bits;
}

struct DealtItem {
  Item item{};
  bool valid = false;  // false: beyond the last one; `item` is another then
};

/// Item `number` of the block.
__device__ __forceinline__ DealtItem dealt_item(const Call& call, const Deal& deal, unsigned number) {
  const unsigned head_groups = static_cast<unsigned>(call.heads) >> deal.head_bits;
  const unsigned group = blockIdx.x / deal.blocks;
  const unsigned of_block = number >> deal.head_bits;
  const std::int64_t row = std::int64_t{blockIdx.x % deal.blocks} * deal.each + of_block;
  const std::int64_t inside = min(row, deal.rows - 1);
  const std::int64_t m = (group % head_groups << deal.head_bits) + (number & ((1u << deal.head_bits) - 1));
  return {.item = item_at(call, (group / head_groups * deal.rows + inside) * call.heads + m),
          .valid = of_block < deal.each && row < deal.rows};
}

/// What 16-byte loads ask for.
inline Support supports_vector_rows(const Problem& problem) {
  if (Support support = supports_levels(problem); !support) return support;
  if (lane_bits(problem) < 0)
    return Support::no("needs channels of 16, 32, 64, 128, 256 or 512 bytes, D = " + std::to_string(problem.channels) +
                       " of " + std::string(to_string(problem.value_dtype)) + " has " +
                       std::to_string(problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype))));
  if (!problem.dense_channels || problem.row_alignment < 16)
    return Support::no("needs channels next to each other, at multiples of 16 bytes");
  if (!problem.dense_pairs) return Support::no("needs x and y next to each other, at multiples of their size");
  if (problem.levels.size() > kInlineLevels)
    return Support::no("needs at most " + std::to_string(kInlineLevels) + " levels");
  if (problem.map_bytes > std::int64_t{INT32_MAX} * 8)
    return Support::no("needs maps of an image and head that span less than 16 GiB");
  if (problem.points > INT32_MAX / 2) return Support::no("needs less than 2^30 sampling points per query");
  return Support::yes();
}

/// What variants of 16-byte loads ask for that fuse no other step.
inline Support supports_vectors(const Problem& problem) {
  if (Support support = supports_plain(problem); !support) return support;
  return supports_vector_rows(problem);
}

}  // namespace tmaops::ops::ms_deform_attn::cuda
