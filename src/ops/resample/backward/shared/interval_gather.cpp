#include "ops/resample/backward/shared/interval_gather.hpp"

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/intervals.hpp"

namespace tmaops::ops::resample_backward {
namespace {

using resample::IntervalKernels;
using resample::Intervals;
using resample::RowRun;

/// Channels whose sums one thread holds at a time, for all samples of a trajectory.
constexpr std::int64_t kMostChannels = 64;
/// Microseconds that one thread takes per channel of a sample, and the cost of a sample or target in channels, about.
constexpr double kElement = 0.6e-3;
constexpr double kRowCost = 24;

template <class Time>
class IntervalGather {
 public:
  IntervalGather(const Problem& problem, const Arguments& arguments, const IntervalKernels& (*kernels)(DType))
      : problem_(problem),
        arguments_(arguments),
        line_(arguments.timeline),
        of_values_(kernels(problem.given)),
        of_gradient_(kernels(problem.output)),
        of_result_(kernels(problem.values)),
        orders_(static_cast<std::size_t>(line_.batch)) {
    for (const ChannelGroup& group : problem.groups)
      if (resample::over_interval(group.interpolation))
        for (std::int64_t done = 0; done < group.count; done += kMostChannels)
          blocks_.push_back({group.first + done, std::min(kMostChannels, group.count - done), group.interpolation});
  }

  void run() {
    const auto blocks = static_cast<std::int64_t>(blocks_.size());
    const double rows =
        static_cast<double>(line_.target_total()) +
        static_cast<double>(line_.source_offsets ? line_.source_offsets[line_.batch] : line_.batch * line_.source_rows);
    const int threads = threads_for(kElement * rows * (kRowCost + static_cast<double>(problem_.channels)));
    parallel_for(line_.batch, 1, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        orders_[static_cast<std::size_t>(b)] = resample::order_of_targets(line_, b);
    });
    parallel_for(line_.batch * blocks, 1, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit)
        gather(unit / blocks, blocks_[static_cast<std::size_t>(unit % blocks)]);
    });
  }

 private:
  static RowRun rows_of(const Rows& rows, DType dtype, std::int64_t b, std::int64_t first, std::int64_t count,
                        const ChannelGroup& block) {
    return {rows.address(dtype, b, first, block.first), rows.row_stride, rows.channel_stride, count, block.count};
  }

  /// The channels of a block, in all samples of a trajectory.
  void gather(std::int64_t b, const ChannelGroup& block) const {
    const std::int64_t samples = line_.source_count(b);
    if (samples == 0) return;
    const auto channels = static_cast<std::size_t>(block.count);
    std::vector<double> sums(static_cast<std::size_t>(samples) * channels, 0.0);
    std::vector<double> gradient(channels), best(channels);
    std::vector<std::int64_t> rows(channels);
    Intervals<Time> intervals(line_, b, orders_[static_cast<std::size_t>(b)]);
    resample::Weights weights;
    resample::SampleRun run{};
    const bool extreme = block.interpolation == Interpolation::min || block.interpolation == Interpolation::max;
    for (std::int64_t k = 0; k < intervals.targets(); ++k) {
      if (!(extreme ? intervals.samples_or_previous(k, run) : intervals.weigh(block.interpolation, k, weights)))
        continue;
      of_gradient_.read(rows_of(arguments_.grad_output, problem_.output, b, intervals.index(k), 1, block),
                        gradient.data());
      if (extreme) {
        (block.interpolation == Interpolation::min ? of_values_.smallest : of_values_.largest)(
            rows_of(arguments_.values, problem_.given, b, run.begin, run.end - run.begin, block), best.data(),
            rows.data());
        for (std::size_t d = 0; d < channels; ++d)
          sums[static_cast<std::size_t>(run.begin + rows[d]) * channels + d] += gradient[d];
        continue;
      }
      double* sum = sums.data() + static_cast<std::size_t>(weights.first) * channels;
      for (const double weight : weights.each) {
        if (weight != 0)
          for (std::size_t d = 0; d < channels; ++d) sum[d] += weight * gradient[d];
        sum += channels;
      }
    }
    const Rows& to = arguments_.grad_values;
    for (std::int64_t row = 0; row < samples; ++row)
      of_result_.write(sums.data() + static_cast<std::size_t>(row) * channels,
                       to.address(problem_.values, b, row, block.first), to.channel_stride, block.count);
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const Timeline& line_;
  const IntervalKernels& of_values_;
  const IntervalKernels& of_gradient_;
  const IntervalKernels& of_result_;
  std::vector<std::vector<std::int64_t>> orders_;
  std::vector<ChannelGroup> blocks_;
};

}  // namespace

void run_interval_gather(const Problem& problem, const Arguments& arguments, const IntervalKernels& (*kernels)(DType)) {
  if (!resample::has_intervals(problem)) return;
  resample::visit_time_type(problem.times,
                            [&]<class Time>(Time*) { IntervalGather<Time>(problem, arguments, kernels).run(); });
}

}  // namespace tmaops::ops::resample_backward
