// Where a target lies among the samples of its trajectory: the definition, shared by the references and by the search
// for the first error. Plain on purpose; the variants have their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {

/// The times of one trajectory.
template <class Time>
struct Times {
  const Time* data = nullptr;
  std::int64_t stride = 1;
  std::int64_t count = 0;
  Time operator[](std::int64_t i) const { return data[i * stride]; }
};

template <class Time>
Times<Time> source_times(const Timeline& line, std::int64_t b) {
  return {line.source.at<const Time>(b), line.source.row_stride, line.source_count(b)};
}

/// Point i of the grid: the product is rounded, then the sum, as numpy's `start + i * period`. Contracting the two to
/// one fused operation would miss samples at the very same times.
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, optimize("fp-contract=off")))
#endif
inline double
grid_time(double start, double period, std::int64_t i) {
  return start + static_cast<double>(i) * period;
}

/// Target t of trajectory b.
template <class Time>
Time target_time(const Timeline& line, std::int64_t b, std::int64_t t) {
  if (!line.uniform_grid) return *line.target.at<const Time>(b, t);
  if constexpr (std::is_same_v<Time, std::int64_t>)
    return line.grid_start_ns + t * line.grid_period_ns;
  else
    return static_cast<Time>(grid_time(line.grid_start, line.grid_period, t));
}

/// later - earlier in the time's own type. False when it does not fit.
template <class Time>
bool difference(Time later, Time earlier, Time& result) {
  if constexpr (std::is_same_v<Time, std::int64_t>) {
    return !__builtin_sub_overflow(later, earlier, &result);
  } else {
    result = later - earlier;
    return std::isfinite(result);
  }
}

/// Samples i and i + 1 belong to one piece: not at the same time, and no gap between them.
template <class Time>
bool joined(const Timeline& line, const Times<Time>& x, std::int64_t i) {
  if (x[i + 1] == x[i]) return false;
  const Time step = static_cast<Time>(x[i + 1] - x[i]);
  if constexpr (std::is_same_v<Time, std::int64_t>)
    return line.max_gap_ns == 0 || step <= line.max_gap_ns;
  else
    return line.max_gap == 0 || static_cast<double>(step) <= line.max_gap;
}

/// What a target is made of.
struct Place {
  enum class Kind { missing, sample, between } kind = Kind::missing;
  std::int64_t row = 0;      // the sample, or the earlier of the two
  double weight = 0;         // between: of sample row + 1; below 0 and above 1 when extrapolating
  bool next_nearer = false;  // between: sample row + 1 is strictly closer
};

/// The place of a time q in a trajectory whose times were checked.
template <class Time>
Place place(const Timeline& line, const Times<Time>& x, Time q) {
  using Kind = Place::Kind;
  const std::int64_t n = x.count;
  if (n == 0) return {};
  const bool before = q < x[0];
  const bool after = q > x[n - 1];
  double least = std::numeric_limits<double>::min();  // strictly between, the weight stays so when it is rounded
  double most = 1 - std::numeric_limits<double>::epsilon() / 2;
  std::int64_t i = 0;
  if (before || after) {
    i = before ? 0 : n - 1;
    if (line.outside == Outside::nan) return {};
    const std::int64_t first = before ? 0 : n - 2;  // of the interval whose curve goes on
    if (line.outside != Outside::extrapolate || n < 2 || !joined(line, x, first)) return {Kind::sample, i};
    i = first;
    least = -std::numeric_limits<double>::infinity();
    most = std::numeric_limits<double>::infinity();
  } else {
    std::int64_t end = n;  // the last sample at or before q is in [i, end)
    while (end - i > 1) {
      const std::int64_t middle = i + (end - i) / 2;
      (x[middle] <= q ? i : end) = middle;
    }
    if (x[i] == q) return {Kind::sample, i};
    if (!joined(line, x, i)) return {};
  }
  const Time from = static_cast<Time>(q - x[i]);
  // Outside, x[i + 1] - q may be beyond the time's type, and nobody asks.
  const bool next_nearer = !before && !after && static_cast<Time>(x[i + 1] - q) < from;
  const Time step = static_cast<Time>(x[i + 1] - x[i]);
  const double weight = static_cast<double>(from) / static_cast<double>(step);
  return {Kind::between, i, std::clamp(weight, least, most), next_nearer};
}

}  // namespace tmaops::ops::resample
