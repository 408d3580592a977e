#include "ops/resample/forward/shared/interval_sweep.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/parallel.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/intervals.hpp"

namespace tmaops::ops::resample {
namespace {

/// Slices wanted in all, so that threads can balance, and targets below which a trajectory is not cut.
constexpr std::int64_t kSlices = 32;
constexpr std::int64_t kSliceTargets = 64;
/// Microseconds that one thread takes per channel of a sample, and the cost of a sample or target in channels, about.
constexpr double kElement = 0.6e-3;
constexpr double kRowCost = 24;

template <class Time>
class IntervalSweep {
 public:
  IntervalSweep(const Problem& problem, const Arguments& arguments, const IntervalKernels& kernels)
      : problem_(problem),
        arguments_(arguments),
        line_(arguments.timeline),
        kernels_(kernels),
        orders_(static_cast<std::size_t>(line_.batch)) {
    for (const ChannelGroup& group : problem.groups) brackets_ = brackets_ || !over_interval(group.interpolation);
  }

  void run() {
    const std::int64_t batch = line_.batch;
    const double rows =
        static_cast<double>(line_.target_total()) +
        static_cast<double>(line_.source_offsets ? line_.source_offsets[batch] : batch * line_.source_rows);
    const int threads = threads_for(kElement * rows * (kRowCost + static_cast<double>(problem_.channels)));
    parallel_for(batch, 1 + batch / kSlices, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) orders_[static_cast<std::size_t>(b)] = order_of_targets(line_, b);
    });
    const std::int64_t longest = line_.target_offsets ? line_.target_total() : line_.target_rows;
    const std::int64_t slices =
        batch == 0 ? 1 : std::max<std::int64_t>(1, std::min(kSlices / batch, longest / kSliceTargets));
    const std::int64_t units = batch * slices;
    parallel_for(units, 1 + units / (4 * kSlices), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t b = unit / slices;
        const std::int64_t targets = line_.target_count(b);
        const std::int64_t part = unit % slices;
        if (line_.source_count(b) > 0) sweep(b, targets * part / slices, targets * (part + 1) / slices);
      }
    });
  }

 private:
  void sweep(std::int64_t b, std::int64_t begin, std::int64_t end) const {
    Intervals<Time> intervals(line_, b, orders_[static_cast<std::size_t>(b)]);
    const auto channels = static_cast<std::size_t>(problem_.channels);
    std::vector<double> result(channels), origin(channels);
    std::vector<std::int64_t> rows(channels);
    Weights weights;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t t = intervals.index(k);
      const Rows& to = arguments_.output;
      bool valid = !(brackets_ && arguments_.valid.data) || intervals.place_of(k).kind != Place::Kind::missing;
      for (const ChannelGroup& group : problem_.groups) {
        if (!over_interval(group.interpolation)) continue;
        if (!combine(intervals, b, k, group, weights, result, origin, rows)) {
          std::fill_n(result.begin(), group.count, std::numeric_limits<double>::quiet_NaN());
          valid = false;
        }
        kernels_.write(result.data(), to.address(problem_.values, b, t, group.first), to.channel_stride, group.count);
      }
      if (arguments_.valid.data) *arguments_.valid.at<std::uint8_t>(b, t) = valid;
    }
  }

  /// The channels of a group at target k. False for NaN by policy.
  bool combine(Intervals<Time>& intervals, std::int64_t b, std::int64_t k, const ChannelGroup& group, Weights& weights,
               std::vector<double>& result, std::vector<double>& origin, std::vector<std::int64_t>& rows) const {
    const auto run = [&](std::int64_t first, std::int64_t count) {
      return RowRun{.rows = arguments_.values.address(problem_.values, b, first, group.first),
                    .row_stride = arguments_.values.row_stride,
                    .channel_stride = arguments_.values.channel_stride,
                    .count = count,
                    .channels = group.count};
    };
    const Interpolation mode = group.interpolation;
    if (mode == Interpolation::count) {
      const auto [first, end] = intervals.samples(k);
      kernels_.count(run(first, end - first), result.data());
      return first < end || intervals.place_of(k).kind != Place::Kind::missing;
    }
    if (mode == Interpolation::min || mode == Interpolation::max || mode == Interpolation::any) {
      SampleRun samples{};
      if (!intervals.samples_or_previous(k, samples)) return false;
      if (mode == Interpolation::any) {
        kernels_.any(run(samples.begin, samples.end - samples.begin), result.data());
        return true;
      }
      (mode == Interpolation::min ? kernels_.smallest : kernels_.largest)(
          run(samples.begin, samples.end - samples.begin), result.data(), rows.data());
      return true;
    }
    if (!intervals.weigh(mode, k, weights)) return false;
    const auto counted = std::ranges::find_if(weights.each, [](double weight) { return weight != 0; });
    const std::int64_t unread = counted - weights.each.begin();
    const auto count = static_cast<std::int64_t>(weights.each.size()) - unread;
    const RowRun read = run(weights.first + unread, count);
    std::fill_n(origin.begin(), group.count, 0.0);
    if (mode != Interpolation::sum) kernels_.read(read, origin.data());
    kernels_.weigh(read, weights.each.data() + unread, origin.data(), result.data());
    return true;
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const Timeline& line_;
  const IntervalKernels& kernels_;
  std::vector<std::vector<std::int64_t>> orders_;
  bool brackets_ = false;  // some channels have a mode between two samples
};

}  // namespace

void run_intervals(const Problem& problem, const Arguments& arguments, const IntervalKernels& kernels) {
  if (!has_intervals(problem)) return;
  visit_time_type(problem.times, [&]<class Time>(Time*) { IntervalSweep<Time>(problem, arguments, kernels).run(); });
}

}  // namespace tmaops::ops::resample
