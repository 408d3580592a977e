#include "ops/resample/data_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "ops/resample/shared/reference_bracket.hpp"
#include "tmaops/error.hpp"

namespace tmaops::ops::resample {
namespace {

[[noreturn]] void fail(const Problem& problem, ErrorCode code, const std::string& where, std::string got,
                       std::string needed) {
  throw Error(code,
              {.where = std::string(problem.op) + ": " + where, .got = std::move(got), .needed = std::move(needed)});
}

template <class Time>
std::string text(Time value) {
  if constexpr (std::is_same_v<Time, std::int64_t>) {
    return std::to_string(value) + " ns";
  } else {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17g s", static_cast<double>(value));
    return buffer;
  }
}

std::string at(const char* what, std::int64_t b, std::int64_t i) {
  return std::string(what) + "[" + std::to_string(b) + ", " + std::to_string(i) + "]";
}

/// Distance to the next f32.
double resolution(float time) {
  const float magnitude = std::abs(time);
  return static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude);
}

template <class Time>
void check_source(const Problem& problem, const Times<Time>& x, std::int64_t b) {
  const std::int64_t n = x.count;
  if constexpr (std::is_floating_point_v<Time>)
    for (std::int64_t i = 0; i < n; ++i)
      if (!std::isfinite(x[i]))
        fail(problem, ErrorCode::times_not_finite, at("source_times", b, i), text(x[i]), "a finite time");
  for (std::int64_t i = 1; i < n; ++i)
    if (x[i] < x[i - 1])
      fail(problem, ErrorCode::times_not_sorted, at("source_times", b, i), text(x[i]) + " after " + text(x[i - 1]),
           "times that increase along a trajectory");
  if constexpr (std::is_same_v<Time, float>)
    if (n > 1 && too_coarse(x[0], x[n - 1], n))
      fail(problem, ErrorCode::time_precision, "source_times of trajectory " + std::to_string(b),
           std::to_string(n) + " f32 timestamps from " + text(x[0]) + " to " + text(x[n - 1]),
           "a mean step that f32 resolves at that magnitude");
  if (problem.duplicates == Duplicates::error)
    for (std::int64_t i = 1; i < n; ++i)
      if (x[i] == x[i - 1]) {
        if constexpr (std::is_same_v<Time, float>)
          if (8 * resolution(x[i]) * static_cast<double>(n - 1) >
                  static_cast<double>(x[n - 1]) - static_cast<double>(x[0]) &&
              x[n - 1] > x[0])
            fail(problem, ErrorCode::time_precision, at("source_times", b, i),
                 "twice " + text(x[i]) + ", where f32 resolves " + text(resolution(x[i])),
                 "a type that resolves an eighth of the mean step");
        fail(problem, ErrorCode::duplicate_times, at("source_times", b, i), "twice " + text(x[i]), "different times");
      }
  Time span{};
  if (!difference(x[n - 1], x[0], span))
    fail(problem, ErrorCode::time_overflow, "source_times of trajectory " + std::to_string(b),
         "times from " + text(x[0]) + " to " + text(x[n - 1]), "a span that the type of the times can hold");
}

/// A quaternion has a norm when some component is not 0 and none is NaN or infinite.
bool is_quaternion(DType dtype, const Rows& values, std::int64_t b, std::int64_t row, std::int64_t first) {
  return visit_value_type(dtype, [&]<class Value>(Value*) {
    bool zero = true;
    for (std::int64_t channel = first; channel < first + 4; ++channel) {
      const double component = static_cast<double>(values.at<const Value>(b, row)[channel * values.channel_stride]);
      if (!std::isfinite(component)) return false;
      zero = zero && component == 0;
    }
    return !zero;
  });
}

template <class Time>
void check_target(const Problem& problem, const Timeline& line, const Times<Time>& x, std::int64_t b, std::int64_t t,
                  const Rows* values) {
  const Time q = target_time<Time>(line, b, t);
  if constexpr (std::is_floating_point_v<Time>)
    if (!std::isfinite(q))
      fail(problem, ErrorCode::times_not_finite, at("target_times", b, t), text(q), "a finite time");
  if (x.count == 0) return;
  const Time first = x[0];
  const Time last = x[x.count - 1];
  if (q < first || q > last) {
    if (line.outside == Outside::error)
      fail(problem, ErrorCode::target_outside, at("target_times", b, t), text(q),
           "a time from " + text(first) + " to " + text(last));
    if (line.outside == Outside::extrapolate && x.count > 1) {
      const std::int64_t i = q < first ? 0 : x.count - 2;
      Time ignored{};
      if (joined(line, x, i) && !difference(q, x[i], ignored))
        fail(problem, ErrorCode::time_overflow, at("target_times", b, t),
             text(q) + " against a sample at " + text(x[i]), "a difference that the type of the times can hold");
    }
  }
  if (values == nullptr) return;
  for (const ChannelGroup& group : problem.groups) {
    if (group.interpolation != Interpolation::slerp) continue;
    const Place found = place(line, x, q);
    if (found.kind == Place::Kind::missing) continue;
    for (std::int64_t row = found.row; row <= found.row + (found.kind == Place::Kind::between ? 1 : 0); ++row)
      if (!is_quaternion(problem.values, *values, b, row, group.first))
        fail(problem, ErrorCode::bad_quaternion,
             "values[" + std::to_string(b) + ", " + std::to_string(row) + ", " + std::to_string(group.first) + ":" +
                 std::to_string(group.first + 4) + "]",
             "zeros, NaN or infinity", "a quaternion whose norm is finite and not zero");
  }
}

template <class Time>
void check_all(const Problem& problem, const Timeline& line, const Rows* values) {
  for (std::int64_t b = 0; b < line.batch; ++b) {
    const std::int64_t targets = line.target_count(b);
    if (targets == 0) continue;
    const Times<Time> x = source_times<Time>(line, b);
    if (x.count == 0 && line.outside != Outside::nan)
      fail(problem, ErrorCode::empty_trajectory, "trajectory " + std::to_string(b),
           "no samples, " + std::to_string(targets) + " targets", "at least one sample, or the outside policy 'nan'");
    if (x.count > 0) check_source(problem, x, b);
    for (std::int64_t t = 0; t < targets; ++t) check_target(problem, line, x, b, t, values);
  }
}

}  // namespace

bool too_coarse(float first, float last, std::int64_t count) {
  const float magnitude = std::max(std::abs(first), std::abs(last));
  const double span = static_cast<double>(last) - static_cast<double>(first);
  if (span == 0) return count > 1 && magnitude >= 131072.0f;
  return resolution(magnitude) * static_cast<double>(count - 1) > span;
}

void check_data(const Problem& problem, const Timeline& timeline, const Rows* values) {
  visit_time_type(timeline.dtype, [&]<class Time>(Time*) { check_all<Time>(problem, timeline, values); });
}

void throw_data_error(const Problem& problem, const Timeline& timeline, const Rows* values) {
  check_data(problem, timeline, values);
  throw Error(ErrorCode::internal, {.where = problem.text(),
                                    .got = "a variant that found fault with the times or values",
                                    .needed = "data that the plain checks find fault with too"});
}

}  // namespace tmaops::ops::resample
