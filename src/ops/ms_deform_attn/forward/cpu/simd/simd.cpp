// Explicit vectors (Highway), chosen for the processor at run time.
//
// Per query and head, the corners and weights of all points are computed lane by lane and put on the stack; then
// the channels of each corner, which lie next to each other, are loaded as vectors and multiplied into several
// accumulators. A corner that the definition leaves out (beyond the border, or of weight 0) is replaced by its
// neighbour with half the weight each, which is exact and needs no branch; skipped points are squeezed out. So no value
// is ever multiplied by a weight of zero that the definition does not sample, and NaN cannot spread. Masked pixels are
// left out in the same way.
//
// A value whose channels lie apart, as (N, M, D, S), is copied head by head, so that a head's pixels are still in the
// cache when its queries read them.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/shares.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_job.hpp"
#include "ops/ms_deform_attn/shared/aligned_buffer.hpp"
#include "ops/ms_deform_attn/shared/call_threads.hpp"
#include "ops/ms_deform_attn/shared/query_order.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/forward/cpu/simd/simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

#include "ops/ms_deform_attn/forward/cpu/simd/simd_copy.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_fused.hpp"
#include "ops/ms_deform_attn/forward/shared/simd_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Corners of the points of one query and head: the pixel, and attention weight times bilinear weight.
/// [corner * capacity + record].
template <Sampling sampling>
struct Records {
  static constexpr std::size_t kCorners = sampling == Sampling::nearest ? 1 : 4;
  static constexpr std::size_t kRun = 0;  // all points are one run
  std::int32_t* HWY_RESTRICT pixels;
  float* HWY_RESTRICT weight;
  std::size_t capacity;
  std::int64_t pixel_stride;
  std::size_t count = 0;

  template <class Stored>
  struct Corners {
    const Records& records;
    const Stored* HWY_RESTRICT value;
    std::size_t k;
    HWY_INLINE const Stored* pixel(std::size_t corner) const {
      return PlainBase(value + records.pixels[corner * records.capacity + k] * records.pixel_stride);
    }
    HWY_INLINE float weight(std::size_t corner) const { return records.weight[corner * records.capacity + k]; }
  };
  template <class Stored>
  HWY_INLINE Corners<Stored> corners(const Stored* HWY_RESTRICT value, std::size_t, std::size_t k) const {
    return {*this, value, k};
  }
};

/// Writes vectors without the lanes that are not kept.
class Squeeze {
  using D = hn::ScalableTag<float>;
  using DI = hn::RebindToSigned<D>;

 public:
  explicit Squeeze(hn::Mask<D> keep)
      : all_(hn::AllTrue(D(), keep)), count_(all_ ? hn::Lanes(D()) : hn::CountTrue(D(), keep)) {
    // Once, and not of each vector: for 8 lanes Highway 1.0.3 and GCC copy a table of 1 KB to the stack each time.
    if (HWY_UNLIKELY(!all_)) hn::Store(hn::Compress(hn::Iota(DI(), 0), hn::RebindMask(DI(), keep)), DI(), kept_);
  }
  std::size_t count() const { return count_; }

  template <class V>
  void store(V vector, hn::TFromV<V>* to) const {
    const hn::DFromV<V> d;
    if (HWY_LIKELY(all_))
      hn::StoreU(vector, d, to);
    else
      hn::StoreU(hn::TableLookupLanes(vector, hn::SetTableIndices(d, kept_)), d, to);
  }

 private:
  bool all_;
  std::size_t count_;
  HWY_ALIGN std::int32_t kept_[hn::MaxLanes(D())];
};

/// Fills the records from rows of x, y and attention weights; the padding of x and y holds NaN.
template <Sampling sampling>
void MakeRecords(const ForwardJob& job, const float* HWY_RESTRICT xy, const float* HWY_RESTRICT attention,
                 Records<sampling>& records) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  const auto points = static_cast<std::size_t>(job.problem.points);
  const auto one = hn::Set(d, 1.0F);
  const auto half = hn::Set(d, 0.5F);
  records.count = 0;
  for (std::size_t k = 0; k < points; k += lanes) {
    hn::Vec<decltype(d)> x;
    hn::Vec<decltype(d)> y;
    hn::LoadInterleaved2(d, xy + 2 * k, x, y);
    const auto weight = hn::LoadU(d, attention + k);
    const auto width = hn::LoadU(d, job.tables.width.data() + k);
    const auto height = hn::LoadU(d, job.tables.height.data() + k);
    const auto pitch = hn::LoadU(di, job.tables.pitch.data() + k);
    const auto start = hn::LoadU(di, job.tables.start.data() + k);
    if constexpr (sampling == Sampling::nearest) {
      const auto keep = hn::And(hn::IsFinite(x), hn::IsFinite(y));
      const auto column = hn::Clamp(hn::Floor(hn::MulAdd(x, width, half)), hn::Zero(d), hn::Sub(width, one));
      const auto row = hn::Clamp(hn::Floor(hn::MulAdd(y, height, half)), hn::Zero(d), hn::Sub(height, one));
      const auto pixel = hn::Add(start, hn::Add(hn::Mul(hn::ConvertTo(di, row), pitch), hn::ConvertTo(di, column)));
      const Squeeze squeeze(keep);
      squeeze.store(pixel, records.pixels + records.count);
      squeeze.store(weight, records.weight + records.count);
      records.count += squeeze.count();
      continue;
    }
    const auto u = hn::MulSub(x, width, half);
    const auto t = hn::MulSub(y, height, half);
    const auto outside = hn::Set(d, -1.0F);
    // False for NaN, too.
    const auto keep =
        hn::And(hn::And(hn::Gt(u, outside), hn::Lt(u, width)), hn::And(hn::Gt(t, outside), hn::Lt(t, height)));
    const auto left = hn::Floor(u);
    const auto top = hn::Floor(t);
    const auto a = hn::Sub(u, left);
    const auto b = hn::Sub(t, top);
    // An index along one axis that is left out takes its neighbour's place, and both get half of its weight.
    const auto no_left = hn::Lt(left, hn::Zero(d));
    const auto no_right = hn::Or(hn::Ge(left, hn::Sub(width, one)), hn::Eq(a, hn::Zero(d)));
    const auto no_top = hn::Lt(top, hn::Zero(d));
    const auto no_bottom = hn::Or(hn::Ge(top, hn::Sub(height, one)), hn::Eq(b, hn::Zero(d)));
    const auto not_a = hn::Sub(one, a);
    const auto not_b = hn::Sub(one, b);
    const auto weight_left =
        hn::IfThenElse(no_left, hn::Mul(a, half), hn::IfThenElse(no_right, hn::Mul(not_a, half), not_a));
    const auto weight_right = hn::IfThenElse(no_left, weight_left, hn::IfThenElse(no_right, weight_left, a));
    const auto weight_top = hn::Mul(
        weight, hn::IfThenElse(no_top, hn::Mul(b, half), hn::IfThenElse(no_bottom, hn::Mul(not_b, half), not_b)));
    const auto weight_bottom = hn::IfThenElse(hn::Or(no_top, no_bottom), weight_top, hn::Mul(weight, b));

    const auto one_pixel = hn::Set(di, 1);
    const auto j = hn::ConvertTo(di, left);
    const auto i = hn::ConvertTo(di, top);
    const auto j0 = hn::IfThenElse(hn::RebindMask(di, no_left), hn::Zero(di), j);
    const auto j1 = hn::IfThenElse(hn::RebindMask(di, no_right), j0, hn::Add(j, one_pixel));
    const auto i0 = hn::IfThenElse(hn::RebindMask(di, no_top), hn::Zero(di), i);
    const auto i1 = hn::IfThenElse(hn::RebindMask(di, no_bottom), i0, hn::Add(i, one_pixel));
    const auto row0 = hn::Add(start, hn::Mul(i0, pitch));
    const auto row1 = hn::Add(start, hn::Mul(i1, pitch));

    const Squeeze squeeze(keep);
    std::int32_t* pixels = records.pixels + records.count;
    float* out = records.weight + records.count;
    const std::size_t step = records.capacity;
    squeeze.store(hn::Add(row0, j0), pixels);
    squeeze.store(hn::Add(row0, j1), pixels + step);
    squeeze.store(hn::Add(row1, j0), pixels + 2 * step);
    squeeze.store(hn::Add(row1, j1), pixels + 3 * step);
    squeeze.store(hn::Mul(weight_top, weight_left), out);
    squeeze.store(hn::Mul(weight_top, weight_right), out + step);
    squeeze.store(hn::Mul(weight_bottom, weight_left), out + 2 * step);
    squeeze.store(hn::Mul(weight_bottom, weight_right), out + 3 * step);
    records.count += squeeze.count();
  }
}

/// Takes the masked pixels out of the records. Another corner of the sample takes the place of one, and both get half
/// of its weight, which is exact.
template <Sampling sampling>
void LeaveOutMasked(const std::uint8_t* mask, std::int64_t stride, Records<sampling>& records) {
  constexpr std::size_t kCorners = Records<sampling>::kCorners;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < records.count; ++k) {
    std::int32_t* pixel[kCorners];
    float* weight[kCorners];
    bool masked[kCorners];
    std::size_t open = kCorners;
    for (std::size_t c = 0; c < kCorners; ++c) {
      const std::size_t from = c * records.capacity + k;
      pixel[c] = records.pixels + c * records.capacity + kept;
      weight[c] = records.weight + c * records.capacity + kept;
      *pixel[c] = records.pixels[from];
      *weight[c] = records.weight[from];
      masked[c] = mask[*pixel[c] * stride] != 0;
      if (!masked[c]) open = c;
    }
    if (open == kCorners) continue;
    for (std::size_t c = 0; c < kCorners; ++c)
      if (masked[c]) {
        *pixel[c] = *pixel[open];
        *weight[c] = *weight[open] *= 0.5F;
      }
    ++kept;
  }
  records.count = kept;
}

template <class Out>
void RoundRow(const float* HWY_RESTRICT from, std::size_t length, Out* to) {
  std::size_t i = 0;
  const auto in_vectors = [&](auto d) HWY_ATTR {
    for (; i + hn::Lanes(d) <= length; i += hn::Lanes(d)) StoreF32(d, hn::LoadU(d, from + i), to + i);
  };
  in_vectors(hn::ScalableTag<float>());
  in_vectors(hn::CappedTag<float, 4>());
  in_vectors(hn::CappedTag<float, 1>());
}

/// The queries order[begin, end), these heads.
template <class Stored, Sampling sampling>
void Rows(const ForwardJob& job, std::span<const std::int64_t> order, std::int64_t begin, std::int64_t end,
          HeadRange heads) {
  constexpr std::size_t kStackPoints = 128;
  const Problem& problem = job.problem;
  const Layout& layout = job.arguments.value;
  const auto points = static_cast<std::size_t>(problem.points);
  const auto channels = static_cast<std::size_t>(problem.channels);
  const std::size_t padded = hwy::RoundUpTo(points, hn::Lanes(hn::ScalableTag<float>()));
  const std::size_t capacity = padded + kMaxLanes;  // a squeezed vector is stored whole

  // Row of locations (2 per point), row of weights (1), weights of the corners (4); pixels of the corners (4).
  HWY_ALIGN float stack[7 * (kStackPoints + kMaxLanes)];
  HWY_ALIGN std::int32_t stack_pixels[4 * (kStackPoints + kMaxLanes)];
  std::vector<float> heap(points > kStackPoints ? 7 * capacity : 0);
  std::vector<std::int32_t> heap_pixels(points > kStackPoints ? 4 * capacity : 0);
  float* scratch = points > kStackPoints ? heap.data() : stack;
  Records<sampling> records{.pixels = points > kStackPoints ? heap_pixels.data() : stack_pixels,
                            .weight = scratch + 3 * capacity,
                            .capacity = capacity,
                            .pixel_stride = layout.strides[1]};

  PointReader reader(job, padded);
  const ConstTensorView& mask = job.arguments.padding_mask;
  const auto* value = static_cast<const Stored*>(job.arguments.value.data);
  const TensorView& output = job.arguments.output;
  const bool rounded = output.dtype != DType::f32;
  std::vector<float> sums(rounded ? channels : 0);  // of a query and head, in front of an output of 16 bits
  const std::int64_t last = std::ssize(order) - 1;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = order[static_cast<std::size_t>(i)] / problem.queries;
    const std::int64_t q = order[static_cast<std::size_t>(i)] % problem.queries;
    const std::int64_t next = order[static_cast<std::size_t>(std::min(i + 1, last))];
    const std::int64_t next_n = next / problem.queries;
    const std::int64_t next_q = next % problem.queries;
    for (std::int64_t m = heads.first; m < heads.last; ++m) {
      // The order jumps from row to row, which the hardware does not foresee.
      reader.ask_for(next_n, next_q, m);
      const float* xy = reader.locations(n, q, m, scratch);
      const float* attention = reader.weights(n, q, m, scratch + 2 * capacity);
      MakeRecords(job, xy, attention, records);
      if (problem.masked)
        LeaveOutMasked(static_cast<const std::uint8_t*>(mask.data) + n * mask.strides[0], mask.strides[1], records);
      const std::int64_t at = output_offset(problem, output, n, q, m);
      float* to = rounded ? sums.data() : static_cast<float*>(output.data) + at;
      SumAllChannels(channels, records, value + value_offset(layout, n, 0, m), to);
      if (rounded) RoundRow(to, channels, static_cast<Stored*>(output.data) + at);
    }
  }
}

/// The queries order[begin, end), counted n * queries + q, these heads.
void Forward(const ForwardJob& job, std::span<const std::int64_t> order, std::int64_t begin, std::int64_t end,
             HeadRange heads) {
  with_short_type(job.problem.value_dtype, [&]<class Stored>(Stored*) {
    if (job.problem.sampling == Sampling::nearest)
      Rows<Stored, Sampling::nearest>(job, order, begin, end, heads);
    else
      Rows<Stored, Sampling::bilinear>(job, order, begin, end, heads);
  });
}

void CopyHead(const ForwardJob& job, std::int64_t n, std::int64_t m, std::int64_t begin, std::int64_t end, void* to) {
  with_short_type(job.problem.value_dtype, [&]<class Stored>(Stored*) {
    using Bits = hwy::UnsignedFromSize<sizeof(Stored)>;
    const Layout& layout = job.arguments.value;
    const auto* from = static_cast<const Bits*>(job.arguments.value.data) + value_offset(layout, n, begin, m);
    CopyPixels(from, layout.strides[1], layout.strides[3], job.problem.channels, end - begin, static_cast<Bits*>(to));
  });
}

}  // namespace tmaops::ops::ms_deform_attn::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::ms_deform_attn::simd {

HWY_EXPORT(Forward);
HWY_EXPORT(CopyHead);

namespace {
/// Of what a thread has left it takes one part of so many at a time. Between 2 and 8 the time does not change.
constexpr std::int64_t kSlices = 8;
/// Sides up to here are exact in f32.
constexpr std::int64_t kMaxSide = 1LL << 24;
/// Pixels that a thread copies at a time, and queries that it works off, where several work on one head.
constexpr std::int64_t kPixelsPerChunk = 1024;
constexpr std::int64_t kQueriesPerChunk = 64;

/// The call on the copy of one head, (S, D).
ForwardJob on_map(const ForwardJob& job, const void* map) {
  Arguments arguments = job.arguments;
  arguments.value.data = map;
  arguments.value.strides = {0, job.problem.channels, 0, 1};
  return {job.problem, arguments};
}

void run_by_heads(const ForwardJob& job, const QueryOrder& order) {
  const Problem& problem = job.problem;
  const std::int64_t items = problem.batch * problem.heads;
  const auto pixel_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype));
  const auto bytes = static_cast<std::size_t>(problem.length * pixel_bytes);
  const int threads = forward_threads(problem);
  if (items < threads) {
    AlignedBuffer<unsigned char> memory(bytes);
    unsigned char* const map = memory.data();
    const ForwardJob own = on_map(job, map);
    for (std::int64_t i = 0; i < items; ++i) {
      const std::int64_t n = i / problem.heads, m = i % problem.heads;
      parallel_for(problem.length, kPixelsPerChunk, threads, [&](std::int64_t begin, std::int64_t end) {
        copy_pixels(job, n, m, begin, end, map + begin * pixel_bytes);
      });
      parallel_for(problem.queries, kQueriesPerChunk, threads, [&](std::int64_t begin, std::int64_t end) {
        forward(own, order.queries, n * problem.queries + begin, n * problem.queries + end, {m, m + 1});
      });
    }
    return;
  }
  parallel_for(items, (items + threads - 1) / threads, threads, [&](std::int64_t begin, std::int64_t end) {
    AlignedBuffer<unsigned char> map(bytes);
    const ForwardJob own = on_map(job, map.data());
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / problem.heads, m = i % problem.heads;
      copy_pixels(job, n, m, 0, problem.length, map.data());
      forward(own, order.queries, n * problem.queries, (n + 1) * problem.queries, {m, m + 1});
    }
  });
}
}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.value_dtype == DType::f64) return Support::no("computes in f32, the value is f64");
  if (!problem.dense_output) return Support::no("needs channels of the output that lie next to each other");
  if (problem.length >= 1LL << 31) return Support::no("counts pixels in 32 bits, S is 2^31 or more");
  for (const Level& level : problem.levels)
    if (level.height > kMaxSide || level.width > kMaxSide) return Support::no("a level has a side longer than 2^24");
  return Support::yes();
}

void forward(const ForwardJob& job, std::span<const std::int64_t> order, std::int64_t begin, std::int64_t end,
             HeadRange heads) {
  HWY_DYNAMIC_DISPATCH(Forward)(job, order, begin, end, heads);
}

void copy_pixels(const ForwardJob& job, std::int64_t n, std::int64_t m, std::int64_t begin, std::int64_t end,
                 void* to) {
  HWY_DYNAMIC_DISPATCH(CopyHead)(job, n, m, begin, end, to);
}

void run(const ForwardJob& job) {
  const Problem& problem = job.problem;
  const QueryOrder order(problem, job.places());
  if (!problem.dense_channels) return run_by_heads(job, order);
  // In runs, whose neighbours share pixels, and in ever smaller pieces, so that all threads end together.
  const int threads = forward_threads(problem);
  Shares shares(std::ssize(order.queries), threads, kSlices);
  parallel_for(threads, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      while (const Shares::Range some = shares.next(static_cast<int>(part)))
        forward(job, order.queries, some.begin, some.end, {0, problem.heads});
  });
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return Work([job = std::make_shared<const ForwardJob>(problem, arguments)] { run(*job); });
}

}  // namespace tmaops::ops::ms_deform_attn::simd
#endif
