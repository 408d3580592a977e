// Vectors through Highway, the instruction set chosen at run time. Adds to `portable`: targets located a vector at a
// time without branches (locate-inl.hpp), linear rows combined by two fused operations per vector, and slerp of a
// vector of targets at a time. The other modes are the plain loops compiled for the same instruction set. Against
// `portable`: 1.2 to 2.7 times faster for linear f32, 5 times for slerp (docs/findings/resample_cpu.md).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resample/cpu/simd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// After foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/cpu/locate-inl.hpp"
#include "ops/resample/definition.hpp"
#include "ops/resample/tiles.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::resample::HWY_NAMESPACE {
namespace {

#include "ops/resample/cpu/channels.inc"

#if HWY_TARGET != HWY_SCALAR

template <class D>
auto LoadWide(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
auto LoadWide(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
auto LoadWide(D d, const float16* from) {
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class D>
auto LoadWide(D d, const bfloat16* from) {
  const hn::Rebind<std::uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d,
                     hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(from)))));
}

/// Past the caches when `streamed`; the address is a multiple of the vector's size then.
template <bool streamed, class D, class V, class T>
void Put(D d, V v, T* to) {
  if constexpr (streamed)
    hn::Stream(v, d, to);
  else
    hn::StoreU(v, d, to);
}

template <bool streamed, class D, class V>
void StoreNarrow(D d, V v, float* to) {
  Put<streamed>(d, v, to);
}
template <bool streamed, class D, class V>
void StoreNarrow(D d, V v, double* to) {
  Put<streamed>(d, v, to);
}
template <bool streamed, class D, class V>
void StoreNarrow(D d, V v, float16* to) {
  const hn::Rebind<hwy::float16_t, D> dh;
  Put<streamed>(dh, hn::DemoteTo(dh, v), reinterpret_cast<hwy::float16_t*>(to));
}
/// Rounds to nearest even (DemoteTo of Highway 1.0 cuts off); NaN stays NaN.
template <bool streamed, class D, class V>
void StoreNarrow(D d, V v, bfloat16* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> dh;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::Eq(v, v)), rounded, hn::Or(bits, hn::Set(du, 0x400000u)));
  Put<streamed>(dh, hn::TruncateTo(dh, hn::ShiftRight<16>(kept)), reinterpret_cast<std::uint16_t*>(to));
}

/// Linear rows of at least as many channels as the tag has lanes; the last vector overlaps the one before.
template <bool streamed, class D, class Value>
void LinearRows(D d, const ChannelRequest& request, const Tile& tile) {
  using C = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t channels = request.channel_count;
  const Value* HWY_RESTRICT values = static_cast<const Value*>(request.values);
  const std::int32_t* HWY_RESTRICT rows = tile.row.data();
  const C* HWY_RESTRICT weights = tile.weight<C>();
  const auto row_bytes = static_cast<std::int64_t>(sizeof(Value)) * channels;
  const Value* HWY_RESTRICT coming = static_cast<const Value*>(request.coming.values);
  const std::int64_t ahead = std::max<std::int64_t>(1, kAheadBytes / (2 * row_bytes));
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
    if (weights[k] == 0) {
      std::int64_t c = 0;
      for (; c + lanes <= channels; c += lanes) StoreNarrow<streamed>(d, LoadWide(d, a + c), out + c);
      if (c < channels) StoreNarrow<streamed>(d, LoadWide(d, a + channels - lanes), out + channels - lanes);
      continue;
    }
    const auto w = hn::Set(d, weights[k]);
    // a - w a + w b in two fused operations: exact for a == b, and no overflow between.
    const auto combine = [&](std::int64_t c) HWY_ATTR {
      const auto from = LoadWide(d, a + c);
      StoreNarrow<streamed>(d, hn::MulAdd(w, LoadWide(d, b + c), hn::NegMulAdd(w, from, from)), out + c);
    };
    std::int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) combine(c);
    if (c < channels) combine(channels - lanes);
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

template <class Value, std::size_t lanes>
bool LinearOfWidth(const ChannelRequest& request, const Tile& tile) {
  using Tag = hn::CappedTag<Compute<Value>, lanes>;
  if constexpr (lanes * sizeof(Compute<Value>) == HWY_MAX_BYTES)
    if (MayStream<Value>(request)) {
      LinearRows<true, Tag, Value>({}, request, tile);
      return true;
    }
  LinearRows<false, Tag, Value>({}, request, tile);
  return true;
}

/// Linear groups by the widest vector that fits into the channels.
template <class Value>
bool CombineLinear(const ChannelRequest& request, const Tile& tile) {
  // Below AVX2, Highway's conversion to f16 is an emulation that does not promise NaN, infinity and subnormals.
  constexpr bool kConverts = !std::is_same_v<Value, float16> || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2);
  if (!kConverts || request.channel_stride != 1 || request.output_channel_stride != 1)
    return combine_linear<Value>(request, tile);
  constexpr std::size_t kFull = HWY_MAX_BYTES / sizeof(Compute<Value>);
  const std::int64_t channels = request.channel_count;
  if constexpr (kFull >= 16)
    if (channels >= 16) return LinearOfWidth<Value, 16>(request, tile);
  if constexpr (kFull >= 8)
    if (channels >= 8) return LinearOfWidth<Value, 8>(request, tile);
  if (channels >= 4) return LinearOfWidth<Value, 4>(request, tile);
  if (channels >= 2) return LinearOfWidth<Value, 2>(request, tile);
  return combine_linear<Value>(request, tile);
}

/// Slerp of a vector of targets at a time, in f64 for every type of value: the formula of reference.cpp.
template <class Value>
bool CombineSlerp(const ChannelRequest& request, const Tile& tile) {
  using C = Compute<Value>;
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(double);
  // Angles up to pi / 2 times weights up to this stay in the range of hn::Sin.
  constexpr double kLargestWeight = 1e4;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0);
  const V largest_number = hn::Set(d, std::numeric_limits<double>::max());
  HWY_ALIGN double from_memory[4][kLanes];
  HWY_ALIGN double to_memory[4][kLanes];
  HWY_ALIGN double weight_memory[kLanes];
  auto good = hn::Eq(zero, zero);
  const auto unit = [&](double(&memory)[4][kLanes], V(&q)[4]) HWY_ATTR {
    V largest = zero;
    for (int c = 0; c < 4; ++c) {
      q[c] = hn::Load(d, memory[c]);
      largest = hn::Max(largest, hn::Abs(q[c]));
    }
    if constexpr (std::is_same_v<Value, double>) {  // squares of other types neither overflow nor vanish in f64
      for (V& c : q) c = hn::Div(c, largest);
    }
    const V square = hn::MulAdd(q[0], q[0], hn::MulAdd(q[1], q[1], hn::MulAdd(q[2], q[2], hn::Mul(q[3], q[3]))));
    good = hn::And(good, hn::And(hn::Gt(square, zero), hn::Le(square, largest_number)));  // false for NaN
    const V scale = hn::Div(one, hn::Sqrt(square));
    for (V& c : q) c = hn::Mul(c, scale);
  };
  for (std::int64_t k = 0; k < request.target_count; k += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t at = std::min(k + lane, request.target_count - 1);
      const TargetRows<Value> rows = rows_of<Value>(request, tile, at);
      const C weight = tile.weight<C>()[at];
      if (!(std::abs(weight) <= kLargestWeight) && weight == weight) return combine_slerp<Value>(request, tile);
      weight_memory[lane] = weight == weight ? static_cast<double>(weight) : 0.0;
      for (int c = 0; c < 4; ++c) {
        // What a target does not use must not be found faulty.
        const double from = weight == weight ? static_cast<double>(widen(rows.row[c * rows.stride])) : 1.0;
        from_memory[c][lane] = from;
        to_memory[c][lane] = weight_memory[lane] != 0 ? static_cast<double>(widen(rows.next[c * rows.stride])) : from;
      }
    }
    V from[4];
    V to[4];
    unit(from_memory, from);
    unit(to_memory, to);
    const V w = hn::Load(d, weight_memory);
    const V dot =
        hn::MulAdd(from[0], to[0], hn::MulAdd(from[1], to[1], hn::MulAdd(from[2], to[2], hn::Mul(from[3], to[3]))));
    const auto opposite = hn::Lt(dot, zero);
    V apart = zero;
    for (int c = 0; c < 4; ++c) {
      to[c] = hn::IfThenElse(opposite, hn::Neg(to[c]), to[c]);
      const V step = hn::Sub(to[c], from[c]);
      apart = hn::MulAdd(step, step, apart);
    }
    const V half_chord = hn::Min(one, hn::Mul(hn::Set(d, 0.5), hn::Sqrt(apart)));
    const V angle = hn::Mul(hn::Set(d, 2.0), hn::Asin(d, half_chord));
    const auto turned = hn::And(hn::Gt(angle, zero), hn::Ne(w, zero));
    const V from_weight = hn::IfThenElse(turned, hn::Sin(d, hn::Mul(hn::Sub(one, w), angle)), one);
    const V to_weight = hn::IfThenElseZero(turned, hn::Sin(d, hn::Mul(w, angle)));
    V square = zero;
    for (int c = 0; c < 4; ++c) {
      from[c] = hn::MulAdd(to_weight, to[c], hn::Mul(from_weight, from[c]));
      square = hn::MulAdd(from[c], from[c], square);
    }
    const V scale = hn::Div(one, hn::Sqrt(square));
    for (int c = 0; c < 4; ++c) hn::Store(hn::Mul(from[c], scale), d, from_memory[c]);
    for (std::int64_t lane = 0; lane < std::min(lanes, request.target_count - k); ++lane) {
      const TargetRows<Value> rows = rows_of<Value>(request, tile, k + lane);
      const C weight = tile.weight<C>()[k + lane];
      if (weight != weight)
        missing_row(rows, 4);
      else
        for (int c = 0; c < 4; ++c) rows.out[c * rows.out_stride] = narrow<Value>(static_cast<C>(from_memory[c][lane]));
    }
  }
  return hn::AllTrue(d, good);
}

#else

template <class Value>
bool CombineSlerp(const ChannelRequest& request, const Tile& tile) {
  return combine_slerp<Value>(request, tile);
}
template <class Value>
bool CombineLinear(const ChannelRequest& request, const Tile& tile) {
  return combine_linear<Value>(request, tile);
}

#endif

template <class Time, class Value>
TileKernels KernelsOf() {
  using C = Compute<Value>;
  return {OrderedVector<Time>,
          Locator<Time, C>(),
          time_ratios<Time, C>,
          {CombineLinear<Value>, combine_step<Value, Interpolation::previous>, combine_step<Value, Interpolation::next>,
           combine_step<Value, Interpolation::nearest>, combine_cubic<Value>, CombineSlerp<Value>},
          [] { hwy::FlushStream(); }};
}

template <class Time>
TileKernels KernelsOf(DType values) {
  switch (values) {
    case DType::f64:
      return KernelsOf<Time, double>();
    case DType::f32:
      return KernelsOf<Time, float>();
    case DType::f16:
      return KernelsOf<Time, float16>();
    default:
      return KernelsOf<Time, bfloat16>();
  }
}

void Launch(const Problem& problem, const Arguments& arguments) {
  run_tiles(problem, arguments,
            problem.times == DType::f32   ? KernelsOf<float>(problem.values)
            : problem.times == DType::f64 ? KernelsOf<double>(problem.values)
                                          : KernelsOf<std::int64_t>(problem.values));
}

}  // namespace
}  // namespace tmaops::ops::resample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::resample {
HWY_EXPORT(Launch);

namespace simd {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("times with a stride other than 1");
  if (!problem.unit_channel_stride) return Support::no("channels with a stride other than 1");
  return tiles_support(problem);
}

void launch(const Problem& problem, const Arguments& arguments, Stream) {
  HWY_DYNAMIC_DISPATCH(Launch)(problem, arguments);
}

}  // namespace simd
}  // namespace tmaops::ops::resample
#endif
