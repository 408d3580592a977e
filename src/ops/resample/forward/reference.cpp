// The definition. With x_i the sample times of a trajectory, y_i the values of one channel and q a target, i is the
// last sample with x_i <= q; differences of times are taken in their own type, all the rest in f64:
//
//   q == x_i   : y_i (slerp: y_i / |y_i|)
//   previous   : y_i                     next    : y_i+1
//   nearest    : y_i+1 if x_i+1 - q < q - x_i, else y_i
//   linear     : y_i + w (y_i+1 - y_i),  w = (q - x_i) / (x_i+1 - x_i)
//   cubic      : Hermite polynomial of y_i, y_i+1 with the slopes of PCHIP (Fritsch and Butland 1984)
//   slerp      : sin((1 - w) a) / sin(a) y_i + sin(w a) / sin(a) y_i+1 of unit quaternions, y_i+1 negated when the two
//                have a negative dot product, a the angle between them; normalised
//
// A gap (x_i+1 - x_i > max_gap) and two samples at one time cut the trajectory into pieces. Targets strictly inside a
// gap are NaN. Slopes use samples of their own piece only; a piece of two samples is a straight line.
// Over an interval (shared/intervals.hpp says which samples are in that of a target, and their weights):
//
//   mean, lowpass, sum : sum of w_i y_i
//   min, max           : the extreme y_i, NaN where one is NaN
//   any                : 1 where a y_i is neither 0 nor NaN, else NaN where one is NaN, else 0
//   count              : number of y_i that are not NaN
//
// Before the first and after the last sample: hold gives that sample, nan NaN, and extrapolate goes on with the curve
// of the outermost interval, which for previous, next and nearest, and for a piece of one sample, is hold.
#include <cmath>
#include <limits>

#include "ops/resample/data_checks.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/intervals.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample::reference {
namespace {

/// One channel of one trajectory.
template <class Value>
struct Channel {
  const Value* data;
  std::int64_t stride;
  double operator[](std::int64_t row) const { return static_cast<double>(data[row * stride]); }
};

/// The slope of PCHIP at sample k, from the secants to the left and right; inside of a piece (scipy's
/// _find_derivatives).
double inner_slope(double h_left, double left, double h_right, double right) {
  if (!((left > 0 && right > 0) || (left < 0 && right < 0))) return 0;  // also where one of them is NaN
  const double w_left = 2 * h_right + h_left;
  const double w_right = h_right + 2 * h_left;
  return (w_left + w_right) / (w_left / left + w_right / right);
}

/// At the end of a piece: one-sided, from the secant of the interval and of the one behind it (scipy's _edge_case).
double end_slope(double h, double secant, double h_behind, double behind) {
  const double slope = ((2 * h + h_behind) * secant - h * behind) / (h + h_behind);
  if (!((slope > 0 && secant > 0) || (slope < 0 && secant < 0))) return 0;
  const bool turns = (secant > 0) != (behind > 0) || behind == 0;
  return turns && std::abs(slope) > 3 * std::abs(secant) ? 3 * secant : slope;
}

template <class Time, class Y>
double pchip(const Timeline& line, const Times<Time>& x, std::int64_t i, double w, const Y& y) {
  const auto step = [&](std::int64_t k) { return static_cast<double>(static_cast<Time>(x[k + 1] - x[k])); };
  const auto secant = [&](std::int64_t k) { return (y[k + 1] - y[k]) / step(k); };
  const bool has_left = i > 0 && joined(line, x, i - 1);
  const bool has_right = i + 2 < x.count && joined(line, x, i + 1);
  if (!has_left && !has_right) return y[i] + w * (y[i + 1] - y[i]);
  const double h = step(i);
  const double slope = has_left ? inner_slope(step(i - 1), secant(i - 1), h, secant(i))
                                : end_slope(h, secant(i), step(i + 1), secant(i + 1));
  const double slope_next = has_right ? inner_slope(h, secant(i), step(i + 1), secant(i + 1))
                                      : end_slope(h, secant(i), step(i - 1), secant(i - 1));
  const double v = 1 - w;
  return (1 + 2 * w) * v * v * y[i] + w * v * v * h * slope + w * w * (3 - 2 * w) * y[i + 1] -
         w * w * v * h * slope_next;
}

struct Quaternion {
  double c[4];
};

template <class Value>
Quaternion unit_quaternion(const Value* q, std::int64_t stride) {
  Quaternion unit{};
  double largest = 0;
  for (int k = 0; k < 4; ++k) {
    unit.c[k] = static_cast<double>(q[k * stride]);
    largest = std::max(largest, std::abs(unit.c[k]));
  }
  double square = 0;  // of components scaled by the largest, so that it neither overflows nor vanishes
  for (double& c : unit.c) {
    c /= largest;
    square += c * c;
  }
  for (double& c : unit.c) c /= std::sqrt(square);
  return unit;
}

Quaternion slerp(const Quaternion& from, Quaternion to, double w) {
  double dot = 0;
  for (int k = 0; k < 4; ++k) dot += from.c[k] * to.c[k];
  if (dot < 0)
    for (double& c : to.c) c = -c;
  double apart = 0;
  double together = 0;
  for (int k = 0; k < 4; ++k) {
    apart += (to.c[k] - from.c[k]) * (to.c[k] - from.c[k]);
    together += (to.c[k] + from.c[k]) * (to.c[k] + from.c[k]);
  }
  // The half angle from its tangent keeps its digits where acos(dot) loses half of them, near dot = 1.
  const double angle = 2 * std::atan2(std::sqrt(apart), std::sqrt(together));
  if (angle == 0) return from;
  Quaternion result{};
  double square = 0;
  for (int k = 0; k < 4; ++k) {
    result.c[k] = (std::sin((1 - w) * angle) * from.c[k] + std::sin(w * angle) * to.c[k]) / std::sin(angle);
    square += result.c[k] * result.c[k];
  }
  for (double& c : result.c) c /= std::sqrt(square);
  return result;
}

template <class Time, class Value>
void target(const Problem& problem, const Timeline& line, const Times<Time>& x, const Place& found, const Value* values,
            const Rows& in, Value* out, const Rows& to) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto write = [&](std::int64_t channel, double value) {
    out[channel * to.channel_stride] = static_cast<Value>(value);
  };
  for (const ChannelGroup& group : problem.groups) {
    if (over_interval(group.interpolation) && x.count > 0) continue;
    if (found.kind != Place::Kind::missing && group.interpolation == Interpolation::slerp) {
      const Value* row = values + found.row * in.row_stride + group.first * in.channel_stride;
      Quaternion q = unit_quaternion(row, in.channel_stride);
      if (found.kind == Place::Kind::between)
        q = slerp(q, unit_quaternion(row + in.row_stride, in.channel_stride), found.weight);
      for (int k = 0; k < 4; ++k) write(group.first + k, q.c[k]);
      continue;
    }
    for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
      const Channel<Value> y{values + channel * in.channel_stride, in.row_stride};
      const std::int64_t i = found.row;
      const double w = found.weight;
      if (found.kind == Place::Kind::missing) {
        write(channel, nan);
      } else if (found.kind == Place::Kind::sample) {
        write(channel, y[i]);
      } else if (group.interpolation == Interpolation::linear) {
        write(channel, y[i] + w * (y[i + 1] - y[i]));
      } else if (group.interpolation == Interpolation::cubic) {
        write(channel, pchip(line, x, i, w, y));
      } else {
        // Outside (w < 0 or w > 1) each of the three holds the sample at the end.
        const bool later = w >= 1 || (w > 0 && (group.interpolation == Interpolation::next ||
                                                (group.interpolation == Interpolation::nearest && found.next_nearer)));
        write(channel, y[later ? i + 1 : i]);
      }
    }
  }
}

/// One channel over the interval of target k; nothing for NaN by policy.
template <class Time, class Y>
std::optional<double> over(Intervals<Time>& intervals, std::int64_t k, Interpolation mode, const Y& y) {
  if (mode == Interpolation::min || mode == Interpolation::max) {
    SampleRun run{};
    if (!intervals.samples_or_previous(k, run)) return std::nullopt;
    return y[extreme_row(run, mode, [&](std::int64_t row) { return y[row]; })];
  }
  if (mode == Interpolation::any || mode == Interpolation::count) {
    SampleRun run = intervals.samples(k);
    if (mode == Interpolation::any) {
      if (!intervals.samples_or_previous(k, run)) return std::nullopt;
    } else if (run.begin == run.end && intervals.place_of(k).kind == Place::Kind::missing) {
      return std::nullopt;
    }
    double found = 0;
    double unknown = 0;
    for (std::int64_t i = run.begin; i < run.end; ++i) {
      if (std::isnan(y[i]))
        unknown = y[i];
      else if (mode == Interpolation::count || y[i] != 0)
        found += 1;
    }
    if (mode == Interpolation::count) return found;
    return found > 0 ? 1 : unknown;
  }
  Weights weights;
  if (!intervals.weigh(mode, k, weights)) return std::nullopt;
  // Weights of mean and lowpass add up to 1: about the first sample that counts, a constant stays exact.
  std::optional<double> origin;
  if (mode == Interpolation::sum) origin = 0;
  double sum = 0;
  for (std::size_t i = 0; i < weights.each.size(); ++i) {
    if (weights.each[i] == 0) continue;
    const double value = y[weights.first + static_cast<std::int64_t>(i)];
    if (!origin) origin = value;
    sum += weights.each[i] * (value - *origin);
  }
  return *origin + sum;
}

/// The channels of trajectory b over intervals, and whether they and those between samples are valid.
template <class Time, class Value>
void run_over_intervals(const Problem& problem, const Arguments& arguments, std::int64_t b) {
  const std::vector<std::int64_t> order = order_of_targets(arguments.timeline, b);
  Intervals<Time> intervals(arguments.timeline, b, order);
  for (std::int64_t k = 0; k < intervals.targets(); ++k) {
    const std::int64_t t = intervals.index(k);
    bool valid = true;
    for (const ChannelGroup& group : problem.groups) {
      if (!over_interval(group.interpolation)) {
        valid = valid && intervals.place_of(k).kind != Place::Kind::missing;
        continue;
      }
      for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
        const Channel<Value> y{arguments.values.at<const Value>(b) + channel * arguments.values.channel_stride,
                               arguments.values.row_stride};
        const std::optional<double> value = over(intervals, k, group.interpolation, y);
        valid = valid && value;
        arguments.output.at<Value>(b, t)[channel * arguments.output.channel_stride] =
            static_cast<Value>(value.value_or(std::numeric_limits<double>::quiet_NaN()));
      }
    }
    if (arguments.valid.data) *arguments.valid.at<std::uint8_t>(b, t) = valid;
  }
}

template <class Time, class Value>
void run(const Problem& problem, const Arguments& arguments) {
  const Timeline& line = arguments.timeline;
  for (std::int64_t b = 0; b < line.batch; ++b) {
    const Times<Time> x = source_times<Time>(line, b);
    const Value* values = arguments.values.at<const Value>(b);
    for (std::int64_t t = 0; t < line.target_count(b); ++t) {
      const Place found = place(line, x, target_time<Time>(line, b, t));
      target(problem, line, x, found, values, arguments.values, arguments.output.at<Value>(b, t), arguments.output);
      if (arguments.valid.data) *arguments.valid.at<std::uint8_t>(b, t) = found.kind != Place::Kind::missing;
    }
    if (has_intervals(problem) && x.count > 0) run_over_intervals<Time, Value>(problem, arguments, b);
  }
}

void run_types(const Problem& problem, const Arguments& arguments) {
  check_data(problem, arguments.timeline, &arguments.values);
  visit_time_type(problem.times, [&]<class Time>(Time*) {
    visit_value_type(problem.values, [&]<class Value>(Value*) { run<Time, Value>(problem, arguments); });
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run_types, problem, arguments);
}

}  // namespace tmaops::ops::resample::reference
