// The value is copied head by head first, then each head's queries are worked off tile by tile.
//
// What that buys over `simd` (measured in docs/findings/ms_deform_attn_cpu.md, D2): the pixels around a tile fill an
// eighth of the cache, and all of its sets; the next tile's pixels can be asked for ahead of time, row by row; and the
// border of zeros leaves one offset per point instead of four. A copy without infinities and NaN needs no care about
// corners that the definition leaves out, for 0 times a number is 0; an image with one goes to `simd`.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "core/parallel.hpp"
#include "core/shares.hpp"
#include "ops/ms_deform_attn/forward/cpu/simd_packed/packed_job.hpp"
#include "ops/ms_deform_attn/shared/call_threads.hpp"
#include "ops/ms_deform_attn/shared/prefetch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/forward/cpu/simd_packed/simd_packed.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "ops/ms_deform_attn/forward/cpu/simd_packed/simd_pack.hpp"
#include "ops/ms_deform_attn/forward/cpu/simd_packed/simd_records.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_fused.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Whether every row of the output is whole cache lines, and may be written past the caches: nobody reads it before it
/// has left them.
bool StreamsRows(const TensorView& output, std::size_t row_bytes) {
  const auto lines = [&](std::int64_t stride) { return stride * size_of(output.dtype) % kCacheLine == 0; };
  return row_bytes % kCacheLine == 0 && reinterpret_cast<std::uintptr_t>(output.data) % kCacheLine == 0 &&
         lines(output.strides[0]) && lines(output.strides[1]) && output.strides[2] == 1;
}

/// What one thread needs to work on tiles.
template <class Stored>
class TileWorker {
 public:
  explicit TileWorker(const ImageJob& image)
      : image_(image),
        problem_(image.job.direct.problem),
        padded_(hwy::RoundUpTo(points(), hn::Lanes(hn::ScalableTag<float>()))),
        reader_(image.job.direct, padded_),
        direct_points_(reader_.template holds<Stored>()),
        output_(image.job.direct.arguments.output),
        row_bytes_(static_cast<std::size_t>(problem_.channels) * sizeof(Stored)),
        streamed_(StreamsRows(output_, row_bytes_)),
        scratch_(2 * scratch_size()),
        offsets_(2 * padded_),
        prefetcher_(problem_, image.job.layout, image.order, 0, std::ssize(problem_.levels)) {}

  /// Tile t of head m.
  void work(std::int64_t m, std::int64_t t) {
    const std::int64_t tiles = image_.order.tiles();
    const std::int64_t* begin = image_.order.begin.data() + image_.image * tiles;
    const auto* map = static_cast<const Stored*>(image_.maps) + m * image_.job.layout.pixels * problem_.channels;
    const auto pixel_bytes = static_cast<std::int64_t>(row_bytes_);
    const std::int64_t steps = begin[t + 1] - begin[t];
    if (t + 1 < tiles || m + 1 == problem_.heads)
      prefetcher_.aim(map, pixel_bytes, t, std::min(t + 1, tiles - 1), steps);
    else
      prefetcher_.aim(map + image_.job.layout.pixels * problem_.channels, pixel_bytes, prefetcher_.kNoTile, 0, steps);
    if (begin[t] == begin[t + 1]) return;
    // One query's offsets and weights are worked out before the sums of the one before, which hide them.
    bool ready = make_records(begin[t], m);
    for (std::int64_t i = begin[t]; i < begin[t + 1]; ++i) {
      ask_for(std::min(i + kAhead, begin[tiles] - 1), m);
      prefetcher_.step();
      const bool this_one = ready;
      ready = i + 1 < begin[t + 1] && make_records(i + 1, m);
      if (this_one)
        sum(i, m, map);
      else
        simd::forward(image_.job.direct, image_.order.queries, i, i + 1, {m, m + 1});
    }
  }
  void finish() const {
    if (streamed_) hwy::FlushStream();
  }

 private:
  // Queries between asking for a row and using it: the rows of one head lie apart, which the hardware does not foresee.
  static constexpr std::int64_t kAhead = 4;

  /// Rows of a query: locations (2), attention weights (1); the weights of the corners (4), in groups of whole vectors
  /// of the widest target.
  std::size_t scratch_size() const { return 3 * padded_ + Records::kCorners * hwy::RoundUpTo(points(), kMaxLanes); }
  std::size_t points() const { return static_cast<std::size_t>(problem_.points); }
  /// The query that comes i-th, of this image.
  std::int64_t query(std::int64_t i) const {
    return image_.order.queries[static_cast<std::size_t>(i)] - image_.image * problem_.queries;
  }
  Stored* output_row(std::int64_t q, std::int64_t m) const {
    return static_cast<Stored*>(output_.data) + output_offset(problem_, output_, image_.image, q, m);
  }
  float* scratch(std::int64_t i) { return scratch_.data() + (i % 2 == 0 ? 0 : scratch_size()); }
  template <std::int64_t kChannels = 0>
  RecordsOf<kChannels> records(std::int64_t i) {
    return {{.offset = offsets_.data() + (i % 2 == 0 ? 0 : padded_),
             .weight = scratch(i) + 3 * padded_,
             .count = points(),
             .channels = problem_.channels,
             .row_step = image_.job.row_step.data()}};
  }

  void ask_for(std::int64_t i, std::int64_t m) const {
    const std::int64_t q = query(i);
    reader_.ask_for(image_.image, q, m);
    if (!streamed_) prefetch_to_write(output_row(q, m), row_bytes_);
  }
  bool make_records(std::int64_t i, std::int64_t m) {
    const std::int64_t q = query(i);
    RecordsOf<0> to = records(i);
    // Of 16 bits each, too, they are loaded as they lie: converting the rows first costs bf16 a tenth of the call.
    if (direct_points_)
      return MakeRecords(image_.job, reader_.template own_locations<Stored>(image_.image, q, m),
                         reader_.template own_weights<Stored>(image_.image, q, m), to);
    const float* xy = reader_.locations(image_.image, q, m, scratch(i));
    const float* attention = reader_.weights(image_.image, q, m, scratch(i) + 2 * padded_);
    return MakeRecords(image_.job, xy, attention, to);
  }
  void sum(std::int64_t i, std::int64_t m, const Stored* map) {
    Stored* own = output_row(query(i), m);
    if (problem_.channels == kUsualChannels)
      sum(records<kUsualChannels>(i), map, own);
    else
      sum_any(records(i), map, own);
  }
  /// Apart, or GCC makes the other's loop worse.
  HWY_NOINLINE void sum_any(const RecordsOf<0>& from, const Stored* map, Stored* own) const { sum(from, map, own); }
  template <std::int64_t kChannels>
  HWY_INLINE void sum(const RecordsOf<kChannels>& from, const Stored* map, Stored* own) const {
    const std::size_t channels = static_cast<std::size_t>(kChannels == 0 ? problem_.channels : kChannels);
    vectors::SumChannels<4>(hn::CappedTag<float, kChannelBlock>(), channels, from, map, own, streamed_);
  }

  const ImageJob& image_;
  const Problem& problem_;
  std::size_t padded_;  // points
  vectors::PointReader reader_;
  bool direct_points_;  // rows of whole vectors in the value's type
  const TensorView& output_;
  std::size_t row_bytes_;  // of the output, and of a pixel
  bool streamed_;
  AlignedBuffer<float> scratch_;
  AlignedBuffer<std::int32_t> offsets_;
  MapPrefetcher prefetcher_;
};

/// What `part` gets of the tiles, which are counted head * tiles + tile.
void Tiles(const ImageJob& image, Shares& shares, int part) {
  with_short_type(image.job.direct.problem.value_dtype, [&]<class Stored>(Stored*) {
    TileWorker<Stored> worker(image);
    while (const Shares::Range some = shares.next(part))
      for (std::int64_t i = some.begin; i < some.end; ++i)
        worker.work(i / image.order.tiles(), i % image.order.tiles());
    worker.finish();
  });
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::ms_deform_attn::simd_packed {

HWY_EXPORT(Pack);
HWY_EXPORT(Tiles);

namespace {
constexpr std::int64_t kRowsPerChunk = 4;
constexpr std::int64_t kQueriesPerChunk = 1024;
}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support direct = simd::supports(problem, device); !direct) return direct;
  if (Support same_type = supports_value_output(problem); !same_type) return same_type;
  if (problem.sampling != Sampling::bilinear) return Support::no("samples bilinearly only");
  if (problem.channels % kChannelBlock != 0)
    return Support::no("works on blocks of " + std::to_string(kChannelBlock) + " channels");
  if (!HeadMapLayout::fits(problem)) return Support::no("a head's map has 2^23 pixels or 2^31 elements, or more");
  return Support::yes();
}

void run(const PackedJob& job) {
  const Problem& problem = job.direct.problem;
  const auto pack = HWY_DYNAMIC_DISPATCH(Pack);
  const auto tiles = HWY_DYNAMIC_DISPATCH(Tiles);
  const QueryOrder order(problem, job.direct.places());
  const std::scoped_lock one_run_at_a_time(job.maps_in_use);
  unsigned char* maps = job.maps.data();
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    const ImageJob image{.job = job, .order = order, .image = n, .maps = maps};
    std::atomic<bool> finite{true};
    parallel_for(static_cast<std::int64_t>(job.layout.rows.size()), kRowsPerChunk, forward_threads(problem),
                 [&](std::int64_t begin, std::int64_t end) {
                   if (!pack(image, maps, begin, end)) finite.store(false, std::memory_order_relaxed);
                 });
    if (!finite && !problem.dense_channels) return simd::run(job.direct);
    if (!finite) {
      parallel_for(problem.queries, kQueriesPerChunk, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = n * problem.queries;
        simd::forward(job.direct, order.queries, first + begin, first + end, {0, problem.heads});
      });
      continue;
    }
    // In runs: where one starts, its first tile waits for pixels that nobody asked for.
    const int threads = forward_threads(problem);
    Shares shares(problem.heads * order.tiles(), threads);
    parallel_for(threads, 1, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) tiles(image, shares, static_cast<int>(part));
    });
  }
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return Work([job = std::make_shared<const PackedJob>(problem, arguments)] { run(*job); });
}

}  // namespace tmaops::ops::ms_deform_attn::simd_packed
#endif
