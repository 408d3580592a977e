// The definition: the transpose of the forward pass,
//
//   grad_values[b, s, d] = sum over t of R[t, s] grad_output[b, t, d]   in f64, in the order of the targets,
//
// R the matrix of weights of trajectory b and of the channel's interpolation (see reference.cpp): a target on a sample
// or held gives 1 to that sample, one between samples of a linear channel 1 - w and w, and one that is NaN by policy
// nothing, so that NaN in its grad_output goes nowhere.
#include <vector>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/shared/data_checks.hpp"
#include "ops/resample/shared/definition.hpp"

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
        for (const ChannelGroup& group : problem.groups)
          for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
            const auto gradient = static_cast<double>(from[channel * arguments.grad_output.channel_stride]);
            const double next = found.kind == Place::Kind::between ? weight_of_next(group.interpolation, found) : 0;
            add(found.row, channel, 1 - next, gradient);
            if (next != 0) add(found.row + 1, channel, next, gradient);
          }
      });
    }
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
