// The value is copied head by head first, then each head's queries are worked off tile by tile.
//
// What that buys over `simd` (measured in docs/findings/ms_deform_attn_cpu.md): the pixels around a tile fill an
// eighth of the cache, and all of its sets; the next tile's pixels can be asked for ahead of time, row by row; and the
// border of zeros leaves one offset per point instead of four. A copy without infinities and NaN needs no care about
// corners that the definition leaves out, for 0 times a number is 0; an image with one goes to `simd`.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/cpu/aligned_buffer.hpp"
#include "ops/ms_deform_attn/cpu/head_maps.hpp"
#include "ops/ms_deform_attn/cpu/prefetch.hpp"
#include "ops/ms_deform_attn/cpu/query_order.hpp"
#include "ops/ms_deform_attn/cpu/simd_job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/cpu/simd_packed.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "ops/ms_deform_attn/cpu/simd_rows.hpp"
#include "ops/ms_deform_attn/cpu/simd_sums.hpp"

#ifndef TMAOPS_MS_DEFORM_ATTN_SIMD_PACKED
#define TMAOPS_MS_DEFORM_ATTN_SIMD_PACKED
namespace tmaops::ops::ms_deform_attn::simd_packed {

/// Channels come in blocks of this many: whole vectors on every target.
inline constexpr std::int64_t kChannelBlock = 16;

/// Zen 4 (the only one of AMD's family 19h with AVX-512) works on 512 bits in two halves. Conversions from f16 to half
/// a register take half as long there, and the sums 2.7 cycles per corner instead of 4.6; f32 and bf16 gain nothing.
inline bool halves_512_bit_vectors() {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  return __builtin_cpu_is("amdfam19h");
#else
  return false;
#endif
}

/// What every thread reads; one entry per point and padding, as vectors of points load it.
struct PackedJob {
  PackedJob(const Problem& problem, const Arguments& arguments)
      : direct(problem, arguments),
        layout(direct.problem),
        maps(static_cast<std::size_t>(problem.heads * layout.pixels * problem.channels) *
             size_of(problem.value_dtype)) {
    for (std::size_t l = 0; l < problem.levels.size(); ++l)
      for (std::int64_t p = 0; p < problem.levels[l].points; ++p) add(l);
    for (std::size_t i = 0; i < kMaxLanes; ++i) add(problem.levels.size() - 1);
  }

  ForwardJob direct;
  HeadMapLayout layout;
  std::vector<float> first;            // pixel (0, 0) of the point's level in a map
  std::vector<float> pitch;            // pixels from row to row
  std::vector<std::int32_t> row_step;  // elements from row to row
  bool halved_vectors = halves_512_bit_vectors();
  /// The copies of one image, kept from run to run: fresh memory costs 2 ms of page faults for 23 MB.
  mutable AlignedBuffer<unsigned char> maps;
  mutable std::mutex maps_in_use{};

 private:
  void add(std::size_t level) {
    first.push_back(static_cast<float>(layout.levels[level].first));
    pitch.push_back(static_cast<float>(layout.levels[level].pitch));
    row_step.push_back(static_cast<std::int32_t>(layout.levels[level].pitch * direct.problem.channels));
  }
};

/// One image's share of a call.
struct ImageJob {
  const PackedJob& job;
  const QueryOrder& order;
  std::int64_t image;
  const void* maps;  // [head][pixel][channel]
};

}  // namespace tmaops::ops::ms_deform_attn::simd_packed
#endif

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = simd::HWY_NAMESPACE;

/// Fills rows [begin, end) of the layout in the maps of all heads; false when a value is infinite or NaN.
template <class Stored>
bool PackRows(const ImageJob& image, Stored* maps, std::int64_t begin, std::int64_t end) {
  using Bits = hwy::UnsignedFromSize<sizeof(Stored)>;
  const hn::CappedTag<Bits, kChannelBlock> d;
  constexpr Bits kExponent = std::is_same_v<Stored, float>     ? static_cast<Bits>(0x7f800000U)
                             : std::is_same_v<Stored, float16> ? static_cast<Bits>(0x7c00U)
                                                               : static_cast<Bits>(0x7f80U);
  const auto exponent = hn::Set(d, kExponent);
  auto largest = hn::Zero(d);
  const Problem& problem = image.job.direct.problem;
  const Layout& value = image.job.direct.arguments.value;
  const auto* from = static_cast<const Stored*>(image.job.direct.arguments.value.data);
  const HeadMapLayout& layout = image.job.layout;
  const std::int64_t channels = problem.channels;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = begin; r < end; ++r) {
    const HeadMapLayout::Row& row = layout.rows[static_cast<std::size_t>(r)];
    for (std::int64_t m = 0; m < problem.heads; ++m) {
      Stored* to = maps + (m * layout.pixels + row.at) * channels;
      std::fill_n(to, row.source < 0 ? row.pitch * channels : channels, Stored{});
    }
    if (row.source < 0) continue;
    // All heads of a pixel at once: they lie in one run of the tensor.
    for (std::int64_t j = 1; j < row.pitch; ++j) {
      for (std::int64_t m = 0; m < problem.heads; ++m) {
        const auto* pixel =
            reinterpret_cast<const Bits*>(from + value_offset(value, image.image, row.source + j - 1, m));
        auto* to = reinterpret_cast<Bits*>(maps + (m * layout.pixels + row.at + j) * channels);
        for (std::int64_t c = 0; c < channels; c += lanes) {
          const auto bits = hn::LoadU(d, pixel + c);
          largest = hn::Max(largest, hn::And(bits, exponent));
          hn::Stream(bits, d, to + c);
        }
      }
    }
  }
  hwy::FlushStream();
  return hn::AllFalse(d, hn::Eq(largest, exponent));
}

bool Pack(const ImageJob& image, void* maps, std::int64_t begin, std::int64_t end) {
  switch (image.job.direct.problem.value_dtype) {
    case DType::f16:
      return PackRows(image, static_cast<float16*>(maps), begin, end);
    case DType::bf16:
      return PackRows(image, static_cast<bfloat16*>(maps), begin, end);
    default:
      return PackRows(image, static_cast<float*>(maps), begin, end);
  }
}

/// The points of one query and head: offset of the upper left corner's first channel in the map, and attention weight
/// times bilinear weight, [corner * capacity + point]. A skipped point has weight 0 at offset 0.
struct Records {
  static constexpr std::size_t kCorners = 4;
  std::int32_t* HWY_RESTRICT offset;
  float* HWY_RESTRICT weight;
  std::size_t capacity;
  std::size_t count;
  std::int64_t channels;
  const std::int32_t* HWY_RESTRICT row_step;

  std::int64_t Offset(std::size_t corner, std::size_t k) const {
    return offset[k] + (corner % 2 == 0 ? 0 : channels) + (corner < 2 ? 0 : row_step[k]);
  }
  float Weight(std::size_t corner, std::size_t k) const { return weight[corner * capacity + k]; }
};

/// Fills the records from rows whose padding holds NaN; false when an attention weight is infinite or NaN.
bool MakeRecords(const PackedJob& job, const float* HWY_RESTRICT xy, const float* HWY_RESTRICT attention,
                 Records& records) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto half = hn::Set(d, 0.5F);
  const auto outside = hn::Set(d, -1.0F);
  const auto channels = hn::Set(di, static_cast<std::int32_t>(records.channels));
  const PointTables& tables = job.direct.tables;
  bool finite = true;
  for (std::size_t k = 0; k < records.count; k += hn::Lanes(d)) {
    hn::Vec<decltype(d)> x;
    hn::Vec<decltype(d)> y;
    hn::LoadInterleaved2(d, xy + 2 * k, x, y);
    const auto width = hn::LoadU(d, tables.width.data() + k);
    const auto height = hn::LoadU(d, tables.height.data() + k);
    const auto u = hn::MulSub(x, width, half);
    const auto t = hn::MulSub(y, height, half);
    // False for NaN, too.
    const auto keep =
        hn::And(hn::And(hn::Gt(u, outside), hn::Lt(u, width)), hn::And(hn::Gt(t, outside), hn::Lt(t, height)));
    const auto weight = hn::IfThenElseZero(keep, hn::LoadU(d, attention + k));
    finite = finite && hn::AllTrue(d, hn::IsFinite(weight));
    const auto left = hn::Floor(u);
    const auto top = hn::Floor(t);
    const auto a = hn::IfThenElseZero(keep, hn::Sub(u, left));
    const auto b = hn::IfThenElseZero(keep, hn::Sub(t, top));
    // Counts of pixels are exact in f32: a map has less than 2^24.
    const auto pixel =
        hn::MulAdd(top, hn::LoadU(d, job.pitch.data() + k), hn::Add(left, hn::LoadU(d, job.first.data() + k)));
    hn::StoreU(hn::Mul(hn::ConvertTo(di, hn::IfThenElseZero(keep, pixel)), channels), di, records.offset + k);
    const auto lower = hn::Mul(weight, b);
    const auto upper = hn::Sub(weight, lower);
    const auto upper_right = hn::Mul(upper, a);
    const auto lower_right = hn::Mul(lower, a);
    float* out = records.weight + k;
    hn::StoreU(hn::Sub(upper, upper_right), d, out);
    hn::StoreU(upper_right, d, out + records.capacity);
    hn::StoreU(hn::Sub(lower, lower_right), d, out + 2 * records.capacity);
    hn::StoreU(lower_right, d, out + 3 * records.capacity);
  }
  return finite;
}

/// Tiles [begin, end), counted head * tiles + tile.
template <class Stored>
void TilesOf(const ImageJob& image, std::int64_t begin, std::int64_t end) {
  // Queries between asking for a row and using it: the rows of one head lie apart, which the hardware does not foresee.
  constexpr std::int64_t kAhead = 4;
  const ForwardJob& direct = image.job.direct;
  const Problem& problem = direct.problem;
  const auto points = static_cast<std::size_t>(problem.points);
  const std::size_t padded = hwy::RoundUpTo(points, hn::Lanes(hn::ScalableTag<float>()));
  AlignedBuffer<float> scratch(7 * padded);  // locations (2), attention weights (1), weights of the corners (4)
  AlignedBuffer<std::int32_t> offsets(padded);
  Records records{.offset = offsets.data(),
                  .weight = scratch.data() + 3 * padded,
                  .capacity = padded,
                  .count = points,
                  .channels = problem.channels,
                  .row_step = image.job.row_step.data()};
  MapPrefetcher prefetcher(problem, image.job.layout, image.order);
  const std::int64_t tiles = image.order.tiles();
  const std::int64_t* tile_begin = image.order.begin.data() + image.image * tiles;
  const std::int64_t map_size = image.job.layout.pixels * problem.channels;
  auto* output = static_cast<Stored*>(direct.arguments.output.data);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t m = unit / tiles;
    const std::int64_t tile = unit % tiles;
    const auto* map = static_cast<const Stored*>(image.maps) + m * map_size;
    const std::int64_t next_tile = std::min(tile + 1, tiles - 1);
    prefetcher.aim(map, problem.channels * static_cast<std::int64_t>(sizeof(Stored)), tile, next_tile,
                   tile_begin[tile + 1] - tile_begin[tile]);
    for (std::int64_t i = tile_begin[tile]; i < tile_begin[tile + 1]; ++i) {
      const auto query = [&](std::int64_t at) {
        return image.order.queries[static_cast<std::size_t>(std::min(at, tile_begin[tiles] - 1))] % problem.queries;
      };
      const std::int64_t q = query(i);
      const std::int64_t ahead = query(i + kAhead);
      prefetch(direct.locations.address(image.image, ahead, m),
                           2 * points * size_of(problem.location_dtype));
      prefetch(direct.weights.address(image.image, ahead, m), points * size_of(problem.weight_dtype));
      prefetch_to_write(output + output_offset(problem, direct.arguments.output, image.image, ahead, m),
                      static_cast<std::size_t>(problem.channels) * sizeof(Stored));
      prefetcher.step();
      const float* xy = vectors::Row(direct.locations, image.image, q, m, 2 * points, 2 * padded, scratch.data());
      const float* attention =
          vectors::Row(direct.weights, image.image, q, m, points, padded, scratch.data() + 2 * padded);
      if (!MakeRecords(image.job, xy, attention, records)) {
        simd::forward(direct, image.order.queries.data(), i, i + 1, {m, m + 1});
        continue;
      }
      Stored* to = output + output_offset(problem, direct.arguments.output, image.image, q, m);
      if (std::is_same_v<Stored, float16> && image.job.halved_vectors)
        vectors::SumChannels(hn::CappedTag<float, 8>(), static_cast<std::size_t>(problem.channels), records, map, to);
      else
        vectors::SumAllChannels(static_cast<std::size_t>(problem.channels), records, map, to);
    }
  }
}

void Tiles(const ImageJob& image, std::int64_t begin, std::int64_t end) {
  switch (image.job.direct.problem.value_dtype) {
    case DType::f16:
      return TilesOf<float16>(image, begin, end);
    case DType::bf16:
      return TilesOf<bfloat16>(image, begin, end);
    default:
      return TilesOf<float>(image, begin, end);
  }
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::ms_deform_attn::simd_packed {

HWY_EXPORT(Pack);
HWY_EXPORT(Tiles);

namespace {
/// Enough chunks to balance, each long enough that the pixels its first tile waits for do not count.
constexpr std::int64_t kChunksPerThread = 8;
constexpr std::int64_t kRowsPerChunk = 4;
constexpr std::int64_t kQueriesPerChunk = 1024;
}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support direct = simd::supports(problem, device); !direct) return direct;
  if (problem.sampling != Sampling::bilinear) return Support::no("samples bilinearly only");
  if (problem.channels % kChannelBlock != 0)
    return Support::no("works on blocks of " + std::to_string(kChannelBlock) + " channels");
  if (!HeadMapLayout::fits(problem)) return Support::no("a head's map has 2^24 pixels or 2^31 elements, or more");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return std::make_shared<const PackedJob>(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream) {
  if (problem.batch * problem.queries * problem.heads * problem.channels == 0) return;
  const auto& job = *static_cast<const PackedJob*>(arguments.prepared.get());
  const auto pack = HWY_DYNAMIC_DISPATCH(Pack);
  const auto tiles = HWY_DYNAMIC_DISPATCH(Tiles);
  const QueryOrder order(problem, arguments.sampling_locations);
  const std::scoped_lock one_run_at_a_time(job.maps_in_use);
  unsigned char* maps = job.maps.data();
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    const ImageJob image{.job = job, .order = order, .image = n, .maps = maps};
    std::atomic<bool> finite{true};
    parallel_for(static_cast<std::int64_t>(job.layout.rows.size()), kRowsPerChunk,
                 [&](std::int64_t begin, std::int64_t end) {
                   if (!pack(image, maps, begin, end)) finite.store(false, std::memory_order_relaxed);
                 });
    if (!finite) {
      parallel_for(problem.queries, kQueriesPerChunk, [&](std::int64_t begin, std::int64_t end) {
        simd::forward(job.direct, order.queries.data() + n * problem.queries, begin, end, {0, problem.heads});
      });
      continue;
    }
    const std::int64_t units = problem.heads * order.tiles();
    const std::int64_t grain = std::max<std::int64_t>(1, units / (num_threads() * kChunksPerThread));
    parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) { tiles(image, begin, end); });
  }
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed
#endif
