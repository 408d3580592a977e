// Locating a vector of targets at once (Highway). For sorted targets, the timestamps between the first and the last of
// a vector are compared with all its lanes and counted: no branch depends on a single target, so irregular times cost
// no mispredictions. Where too many timestamps lie between, and for unsorted targets, each lane halves its own range.
// Included once per instruction set; see hwy/foreach_target.h.
#if defined(TMAOPS_OPS_RESAMPLE_CPU_LOCATE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TMAOPS_OPS_RESAMPLE_CPU_LOCATE_INL_HPP
#undef TMAOPS_OPS_RESAMPLE_CPU_LOCATE_INL_HPP
#else
#define TMAOPS_OPS_RESAMPLE_CPU_LOCATE_INL_HPP
#endif

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/shared/reference_bracket.hpp"
#include "ops/resample/shared/tiles.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::resample::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#include "ops/resample/shared/locate.inc"

#if HWY_TARGET != HWY_SCALAR

/// Timestamps per target beyond which halving (log2 of the samples gathers) beats counting (one comparison per
/// timestamp); docs/findings/resample_cpu.md, Q2.
template <class Time>
constexpr std::int64_t kCountedPerTarget = sizeof(Time) == 4 ? 12 : 40;

template <class Time>
bool OrderedVector(const void* times, std::int64_t stride, std::int64_t begin, std::int64_t end, bool strict) {
  if (stride != 1) return ordered_each<Time>(times, stride, begin, end, strict);
  const hn::ScalableTag<Time> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Time* HWY_RESTRICT x = static_cast<const Time*>(times);
  auto good = hn::Eq(hn::Zero(d), hn::Zero(d));
  std::int64_t i = begin;
  // Written so that NaN is not in order. An integer has no >=: not less, and NaN is not a case.
  if (strict) {
    for (; i + lanes <= end; i += lanes) good = hn::And(good, hn::Lt(hn::LoadU(d, x + i - 1), hn::LoadU(d, x + i)));
  } else if constexpr (std::is_floating_point_v<Time>) {
    for (; i + lanes <= end; i += lanes) good = hn::And(good, hn::Le(hn::LoadU(d, x + i - 1), hn::LoadU(d, x + i)));
  } else {
    for (; i + lanes <= end; i += lanes)
      good = hn::And(good, hn::Not(hn::Gt(hn::LoadU(d, x + i - 1), hn::LoadU(d, x + i))));
  }
  return hn::AllTrue(d, good) && ordered_each<Time>(times, 1, i, end, strict);
}

/// Number of samples at or before each lane's q, among `count` of them, by halving.
template <class D, class V, class Time = hn::TFromD<D>>
auto HalveForCount(D d, V q, const Time* HWY_RESTRICT x, std::int64_t count) {
  const hn::RebindToSigned<D> di;
  using Index = hn::TFromD<decltype(di)>;
  const auto all = hn::Set(di, static_cast<Index>(count));
  const auto one = hn::Set(di, Index{1});
  auto found = hn::Zero(di);
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count))); step > 0; step /= 2) {
    const auto probe = hn::Add(found, hn::Set(di, static_cast<Index>(step)));
    const auto time = hn::GatherIndex(d, x, hn::Sub(hn::Min(probe, all), one));
    const auto beyond = hn::Or(hn::Gt(probe, all), hn::RebindMask(di, hn::Gt(time, q)));
    found = hn::IfThenElse(beyond, found, probe);
  }
  return found;
}

/// The same for sorted lanes, by comparing each timestamp up to the last lane's with all lanes; `base` of them are
/// known to be at or before the first lane.
template <class D, class V, class Time = hn::TFromD<D>>
auto CountTimestamps(D d, V q, Time last, const Time* HWY_RESTRICT x, std::int64_t base, std::int64_t count) {
  const hn::RebindToSigned<D> di;
  using Index = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t far = base + kCountedPerTarget<Time> * lanes;
  if (far < count && !(x[far] > last)) {
    const auto rest = HalveForCount(d, q, x + base, count - base);
    return hn::Add(rest, hn::Set(di, static_cast<Index>(base)));
  }
  const auto one = hn::Set(di, Index{1});
  auto later = hn::Zero(di);   // timestamps of those looked at that are after the lane
  auto later2 = hn::Zero(di);  // two sums, so that one comparison need not wait for the one before
  const auto look = [&](decltype(later)& sum, std::int64_t j) HWY_ATTR {
    sum = hn::IfThenElse(hn::RebindMask(di, hn::Gt(hn::Set(d, x[j]), q)), hn::Add(sum, one), sum);
  };
  std::int64_t j = base;
  for (; j + 4 <= count && x[j] <= last; j += 4) {
    look(later, j);
    look(later2, j + 1);
    look(later, j + 2);
    look(later2, j + 3);
  }
  for (; j < count && x[j] <= last; ++j) look(later, j);
  return hn::Sub(hn::Set(di, static_cast<Index>(j)), hn::Add(later, later2));
}

/// What stays the same over a tile.
template <class Time, class Weight>
struct LocateConstants {
  const Time* HWY_RESTRICT x;
  std::int64_t count;
  bool nearest;
  bool gap;
  Time max_gap;
  Outside outside;
};

/// The largest number of a type that is not above a limit.
template <class Time>
Time at_most(double limit) {
  auto rounded = static_cast<Time>(limit);
  if (static_cast<double>(rounded) > limit) rounded = std::nextafter(rounded, Time{0});
  return rounded;
}

/// Stores rows, from lanes as wide as the times.
template <class DI, class VI>
void StoreRows(DI di, VI rows, std::int32_t* HWY_RESTRICT to) {
  if constexpr (sizeof(hn::TFromD<DI>) == 4) {
    hn::StoreU(rows, di, to);
  } else {
    const hn::RebindToUnsigned<DI> du;
    const hn::Rebind<std::uint32_t, DI> du32;
    hn::StoreU(hn::TruncateTo(du32, hn::BitCast(du, rows)), du32, reinterpret_cast<std::uint32_t*>(to));
  }
}

/// Weights of a vector of targets with known counts of samples at or before them. Bit lane of `outside`: the target
/// lies outside and is still to be extrapolated. False on an error.
template <class Time, class Weight, class D, class V, class VI>
bool StoreGroup(const LocateConstants<Time, Weight>& constants, D d, V q, VI at_or_before,
                std::int32_t* HWY_RESTRICT row, Weight* HWY_RESTRICT weight, bool& any_outside) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToFloat<D> df;  // of the width of the times
  using Index = hn::TFromD<decltype(di)>;
  using Float = hn::TFromD<decltype(df)>;
  const auto last_row = hn::Set(di, static_cast<Index>(constants.count - 1));
  const auto one = hn::Set(di, Index{1});
  const auto i = hn::Max(hn::Sub(at_or_before, one), hn::Zero(di));
  const auto next = hn::Min(hn::Add(i, one), last_row);
  StoreRows(di, i, row);
  const auto time = hn::GatherIndex(d, constants.x, i);
  const auto time_next = hn::GatherIndex(d, constants.x, next);
  const auto from = hn::Sub(q, time);
  const auto step = hn::Sub(time_next, time);
  const auto inside = hn::RebindMask(df, hn::And(hn::Gt(q, time), hn::Gt(time_next, time)));
  const auto as_float = [&](auto v) HWY_ATTR {
    if constexpr (std::is_floating_point_v<Time>)
      return v;
    else
      return hn::ConvertTo(df, v);
  };
  // Rounding must not move the target onto a sample, nor across the middle; the bounds are numbers of both types.
  const auto least = hn::Set(df, static_cast<Float>(std::numeric_limits<Weight>::min()));
  const auto most = hn::Set(df, static_cast<Float>(1 - std::numeric_limits<Weight>::epsilon() / 2));
  auto w = hn::Min(hn::Max(hn::Div(as_float(from), as_float(step)), least), most);
  if (constants.nearest) {
    const auto half = hn::Set(df, Float{0.5});
    const auto past = hn::Set(df, static_cast<Float>(Weight{0.5} + std::numeric_limits<Weight>::epsilon() / 2));
    const auto nearer = hn::RebindMask(df, hn::Lt(hn::Sub(time_next, q), from));
    w = hn::IfThenElse(nearer, hn::Max(w, past), hn::Min(w, half));
  }
  const auto nan = hn::Set(df, std::numeric_limits<Float>::quiet_NaN());
  if (constants.gap) w = hn::IfThenElse(hn::RebindMask(df, hn::Gt(step, hn::Set(d, constants.max_gap))), nan, w);
  w = hn::IfThenElseZero(inside, w);
  if (constants.outside != Outside::hold) {
    const auto outside =
        hn::Or(hn::Lt(q, hn::Set(d, constants.x[0])), hn::Gt(q, hn::Set(d, constants.x[constants.count - 1])));
    if (!hn::AllFalse(d, outside)) {
      if (constants.outside == Outside::error) return false;
      any_outside = true;
      w = hn::IfThenElse(hn::RebindMask(df, outside), nan, w);
    }
  }
  if constexpr (std::is_same_v<Float, Weight>) {
    hn::StoreU(w, df, weight);
  } else {
    const hn::Rebind<Weight, decltype(df)> narrow_tag;
    hn::StoreU(hn::DemoteTo(narrow_tag, w), narrow_tag, weight);
  }
  return true;
}

template <class Time, class Weight>
bool LocateVector(const LocateRequest& request, Tile& tile) {
  const Timeline& line = *request.timeline;
  if (request.source_stride != 1 || request.target_stride != 1) return locate_each<Time, Weight>(request, tile);
  const hn::ScalableTag<Time> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t n = request.source_count;
  const Time* HWY_RESTRICT q = static_cast<const Time*>(request.target);
  LocateConstants<Time, Weight> constants{
      static_cast<const Time*>(request.source), n, request.nearest, false, Time{}, line.outside};
  if constexpr (std::is_floating_point_v<Time>) {
    constants.gap = line.max_gap > 0;
    if (constants.gap)
      constants.max_gap = at_most<Time>(std::min(line.max_gap, static_cast<double>(std::numeric_limits<Time>::max())));
  } else {
    constants.gap = line.max_gap_ns > 0;
    constants.max_gap = line.max_gap_ns;
  }
  const Times<Time> x{constants.x, 1, n};
  const bool sorted = OrderedVector<Time>(q, 1, 1, request.target_count, false);
  std::int64_t base = sorted ? count_at_or_before(x, q[0], n / 2) : 0;
  auto finite = hn::Eq(hn::Zero(d), hn::Zero(d));
  bool any_outside = false;
  for (std::int64_t k = 0; k < request.target_count; k += lanes) {
    const std::int64_t used = std::min(lanes, request.target_count - k);
    HWY_ALIGN Time padded[HWY_MAX_BYTES / sizeof(Time)];
    const Time* from = q + k;
    if (used < lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) padded[lane] = q[k + std::min(lane, used - 1)];
      from = padded;
    }
    const auto times = hn::LoadU(d, from);
    if constexpr (std::is_floating_point_v<Time>)
      finite = hn::And(finite, hn::Le(hn::Abs(times), hn::Set(d, std::numeric_limits<Time>::max())));
    std::int32_t* row = tile.row.data() + k;
    const auto found = sorted ? CountTimestamps(d, times, from[lanes - 1], constants.x, base, n)
                              : HalveForCount(d, times, constants.x, n);
    if (!StoreGroup<Time, Weight>(constants, d, times, found, row, tile.weight.as<Weight>() + k, any_outside))
      return false;
    base = row[lanes - 1];
  }
  if (!hn::AllTrue(d, finite)) return false;
  if (any_outside && line.outside == Outside::extrapolate) {
    for (std::int64_t k = 0; k < request.target_count; ++k)
      if (const bool before = q[k] < x[0]; before || q[k] > x[n - 1])
        if (!weigh<Time, Weight>(request, x, before ? 0 : n, q[k], static_cast<std::size_t>(k), tile)) return false;
  }
  return true;
}

#else  // one lane: the plain loops

template <class Time>
constexpr auto OrderedVector = &ordered_each<Time>;
template <class Time, class Weight>
constexpr auto LocateVector = &locate_each<Time, Weight>;

#endif

/// The locate kernel of a time and a weight type.
template <class Time, class Weight>
constexpr auto Locator() {
  // f64 weights from f32 differences are rare, and the lanes would have to be widened half by half.
  if constexpr (std::is_same_v<Time, float> && std::is_same_v<Weight, double>)
    return locate_each<Time, Weight>;
  else
    return LocateVector<Time, Weight>;
}

}  // namespace
}  // namespace tmaops::ops::resample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
