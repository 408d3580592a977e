// Vectors through Highway, the instruction set chosen at run time. Adds to `portable`: targets located a vector at a
// time without branches (locate-inl.hpp), linear rows combined by two fused operations per vector, PCHIP of a vector of
// channels and slerp of a vector of targets at a time. The other modes are the plain loops compiled for the same
// instruction set. What it gains over `portable`: docs/findings/resample_cpu.md, Q14.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resample/forward/cpu/simd/simd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// After foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/forward/shared/interval_sweep.hpp"
#include "ops/resample/shared/locate-inl.hpp"
#include "ops/resample/shared/reference_bracket.hpp"
#include "ops/resample/shared/tiles.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::resample::HWY_NAMESPACE {
namespace {

#include "ops/resample/shared/channels.inc"
#include "ops/resample/shared/interval_rows.inc"

#if HWY_TARGET != HWY_SCALAR

#include "ops/resample/forward/cpu/simd/vectors.inc"

/// Linear rows of at least as many channels as the tag has lanes; the last vector overlaps the one before. One channel
/// is a vector of one lane, so that a column by itself has the bits that it has among others.
template <bool streamed, class D, class Value>
void LinearRows(D d, const ChannelRequest& request, const Tile& tile) {
  using C = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t channels = request.channel_count;
  const Value* HWY_RESTRICT values = static_cast<const Value*>(request.values);
  const std::int32_t* HWY_RESTRICT rows = tile.row.data();
  const C* HWY_RESTRICT weights = tile.weight.as<C>();
  const auto row_bytes = static_cast<std::int64_t>(sizeof(Value)) * channels;
  const Value* HWY_RESTRICT coming = static_cast<const Value*>(request.coming.values);
  const std::int64_t ahead = std::max<std::int64_t>(1, kPrefetchedBytes / (2 * row_bytes));
  const auto fetch = [&](const Value* sample) HWY_ATTR {  // and the one after it, or harmlessly what lies there
    fetch_ahead(sample, row_bytes);
    fetch_ahead(sample + request.row_stride, row_bytes);
  };
  for (std::int64_t k = 0; k < request.target_count; ++k) {
    const std::int64_t row = rows[k];
    // A steady stream, on into the next tile: asking for much at once exceeds the miss buffers and is ignored.
    if (const std::int64_t there = k + ahead; there < request.target_count)
      fetch(values + rows[there] * request.row_stride);
    else if (const std::int64_t later = there - request.target_count; later < request.coming.target_count)
      fetch(coming + request.coming.tile->row[static_cast<std::size_t>(later)] * request.row_stride);
    const Value* HWY_RESTRICT a = values + row * request.row_stride;
    const Value* HWY_RESTRICT b = a + (row + 1 < request.row_count ? request.row_stride : 0);
    Value* HWY_RESTRICT out = static_cast<Value*>(request.output) + k * request.output_row_stride;
    const auto w = hn::Set(d, weights[k]);
    const auto all_channels = [&](const auto& combine) HWY_ATTR {
      const auto some = [&](std::int64_t c) HWY_ATTR {
        StoreNarrow<streamed>(d, combine(LoadWide(d, a + c), LoadWide(d, b + c)), out + c);
      };
      std::int64_t c = 0;
      for (; c + lanes <= channels; c += lanes) some(c);
      if (c < channels) some(channels - lanes);
    };
    if (weights[k] == 0) {
      all_channels([](auto from, auto) HWY_ATTR { return from; });
      continue;
    }
    // Between the samples a - w a + w b in two fused operations: exact for a == b, and no overflow between. Beyond them
    // that would add up two large numbers of opposite signs, each rounded.
    if (weights[k] > 0 && weights[k] < 1)
      all_channels([&](auto from, auto to) HWY_ATTR { return hn::MulAdd(w, to, hn::NegMulAdd(w, from, from)); });
    else
      all_channels([&](auto from, auto to) HWY_ATTR { return hn::MulAdd(w, hn::Sub(to, from), from); });
  }
}

/// Whether the rows may be written past the caches: whole cache lines, and more data than the caches hold.
template <class Value>
bool MayStream(const ChannelRequest& request) {
  const auto start = reinterpret_cast<std::uintptr_t>(request.output);
  const auto row = static_cast<std::uintptr_t>(request.channel_count) * sizeof(Value);
  const auto pitch = static_cast<std::uintptr_t>(request.output_row_stride) * sizeof(Value);
  return request.beyond_caches && (start | row | pitch) % kCacheLine == 0;
}

template <class Value>
bool CombineLinear(const ChannelRequest& request, const Tile& tile) {
  if (!kConverts<Value> || request.channel_stride != 1 || request.output_channel_stride != 1)
    return combine_linear<Value>(request, tile);
  const bool wide = WidestVector<Compute<Value>>(request.channel_count, [&](auto d) {
    // Full vectors alone, of 16 bytes in memory at least: x86 streams shorter ones as if they had 16.
    constexpr std::size_t kLanes = hn::MaxLanes(decltype(d)());
    if constexpr (kLanes * sizeof(Compute<Value>) == HWY_MAX_BYTES && kLanes * sizeof(Value) >= 16)
      if (MayStream<Value>(request)) return LinearRows<true, decltype(d), Value>(d, request, tile);
    LinearRows<false, decltype(d), Value>(d, request, tile);
  });
  if constexpr (std::is_same_v<Compute<Value>, Value>)
    if (!wide && request.channel_count == 1) {
      LinearRows<false, hn::CappedTag<Value, 1>, Value>({}, request, tile);
      return true;
    }
  return wide || combine_linear<Value>(request, tile);
}

#include "ops/resample/forward/cpu/simd/cubic.inc"
#include "ops/resample/forward/cpu/simd/slerp.inc"

#else

template <class Value>
constexpr auto CombineLinear = &combine_linear<Value>;
template <class Value>
constexpr auto CombineCubic = &combine_cubic<Value>;
template <class Value>
constexpr auto CombineSlerp = &combine_slerp<Value>;

#endif

template <class Time, class Value>
TileKernels KernelsOf() {
  using C = Compute<Value>;
  return {OrderedVector<Time>,
          Locator<Time, C>(),
          time_ratios<Time, C>,
          {CombineLinear<Value>, combine_step<Value, Interpolation::previous>, combine_step<Value, Interpolation::next>,
           combine_step<Value, Interpolation::nearest>, CombineCubic<Value>, CombineSlerp<Value>},
          [] { hwy::FlushStream(); }};
}

void Run(const Problem& problem, const Arguments& arguments) {
  visit_time_type(problem.times, [&]<class Time>(Time*) {
    visit_value_type(problem.values,
                     [&]<class Value>(Value*) { run_tiles(problem, arguments, KernelsOf<Time, Value>()); });
  });
  run_intervals(problem, arguments, interval_kernels(problem.values));
}

}  // namespace
}  // namespace tmaops::ops::resample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::resample {
HWY_EXPORT(Run);

namespace simd {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("times with a stride other than 1");
  if (!problem.unit_channel_stride) return Support::no("channels with a stride other than 1");
  return tiles_support(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return Work([=] { HWY_DYNAMIC_DISPATCH(Run)(problem, arguments); });
}

}  // namespace simd
}  // namespace tmaops::ops::resample
#endif
