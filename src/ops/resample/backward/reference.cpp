// The definition: the transpose of the forward pass,
//
//   grad_values[b, s, d] = sum over t of R[t, s] grad_output[b, t, d]   in f64, in the order of the targets,
//
// R the matrix of weights of trajectory b and of the channel's interpolation (see reference.cpp): a target on a sample
// or held gives 1 to that sample, one between samples of a linear channel 1 - w and w, one over an interval the weights
// of shared/intervals.hpp (min and max: 1 to the extreme), and one that is NaN by policy nothing, so that NaN in its
// grad_output goes nowhere.
#include <vector>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/data_checks.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/intervals.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample_backward::reference_backward {
namespace {

using resample::Place;

/// Weight of sample row + 1 in a target between samples.
double weight_of_next(Interpolation interpolation, const Place& found) {
  switch (interpolation) {
    case Interpolation::next:
      return found.weight > 0 ? 1 : 0;
    case Interpolation::nearest:
      return found.weight >= 1 || (found.weight > 0 && found.next_nearer) ? 1 : 0;
    case Interpolation::previous:
      return found.weight >= 1 ? 1 : 0;
    default:
      return found.weight;
  }
}

/// Adds what the targets of trajectory b give to channels over their intervals.
template <class Time, class Add>
void add_intervals(const Problem& problem, const Arguments& arguments, std::int64_t b, const Add& add) {
  const std::vector<std::int64_t> order = resample::order_of_targets(arguments.timeline, b);
  resample::Intervals<Time> intervals(arguments.timeline, b, order);
  resample::Weights weights;
  resample::SampleRun run{};
  const auto value_of = [&](const Rows& rows, DType dtype, std::int64_t row, std::int64_t channel) {
    return resample::visit_value_type(dtype, [&]<class Value>(Value*) {
      return static_cast<double>(rows.at<const Value>(b, row)[channel * rows.channel_stride]);
    });
  };
  for (std::int64_t k = 0; k < intervals.targets(); ++k)
    for (const ChannelGroup& group : problem.groups) {
      if (!resample::over_interval(group.interpolation)) continue;
      const bool extreme = group.interpolation == Interpolation::min || group.interpolation == Interpolation::max;
      if (!(extreme ? intervals.samples_or_previous(k, run) : intervals.weigh(group.interpolation, k, weights)))
        continue;
      for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
        const double gradient = value_of(arguments.grad_output, problem.output, intervals.index(k), channel);
        if (extreme) {
          const auto y = [&](std::int64_t row) { return value_of(arguments.values, problem.given, row, channel); };
          add(resample::extreme_row(run, group.interpolation, y), channel, 1, gradient);
          continue;
        }
        for (std::size_t i = 0; i < weights.each.size(); ++i)
          add(weights.first + static_cast<std::int64_t>(i), channel, weights.each[i], gradient);
      }
    }
}

template <class Time>
void run(const Problem& problem, const Arguments& arguments) {
  const Timeline& line = arguments.timeline;
  std::vector<double> sums;
  for (std::int64_t b = 0; b < line.batch; ++b) {
    const resample::Times<Time> x = resample::source_times<Time>(line, b);
    sums.assign(static_cast<std::size_t>(x.count * problem.channels), 0.0);
    const auto add = [&](std::int64_t row, std::int64_t channel, double weight, double gradient) {
      if (weight != 0) sums[static_cast<std::size_t>(row * problem.channels + channel)] += weight * gradient;
    };
    for (std::int64_t t = 0; t < line.target_count(b); ++t) {
      const Place found = resample::place(line, x, resample::target_time<Time>(line, b, t));
      if (found.kind == Place::Kind::missing) continue;
      resample::visit_value_type(problem.output, [&]<class Value>(Value*) {
        const Value* from = arguments.grad_output.at<const Value>(b, t);
        for (const ChannelGroup& group : problem.groups) {
          if (resample::over_interval(group.interpolation)) continue;
          for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
            const auto gradient = static_cast<double>(from[channel * arguments.grad_output.channel_stride]);
            const double next = found.kind == Place::Kind::between ? weight_of_next(group.interpolation, found) : 0;
            add(found.row, channel, 1 - next, gradient);
            if (next != 0) add(found.row + 1, channel, next, gradient);
          }
        }
      });
    }
    if (x.count > 0 && line.target_count(b) > 0 && resample::has_intervals(problem))
      add_intervals<Time>(problem, arguments, b, add);
    for (std::int64_t row = 0; row < x.count; ++row)
      resample::visit_value_type(problem.values, [&]<class Value>(Value*) {
        Value* to = arguments.grad_values.at<Value>(b, row);
        for (std::int64_t channel = 0; channel < problem.channels; ++channel)
          to[channel * arguments.grad_values.channel_stride] =
              static_cast<Value>(sums[static_cast<std::size_t>(row * problem.channels + channel)]);
      });
  }
}

void run_times(const Problem& problem, const Arguments& arguments) {
  resample::check_data(problem, arguments.timeline, nullptr);
  resample::visit_time_type(problem.times, [&]<class Time>(Time*) { run<Time>(problem, arguments); });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run_times, problem, arguments);
}

}  // namespace tmaops::ops::resample_backward::reference_backward
