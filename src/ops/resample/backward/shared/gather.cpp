#include "ops/resample/backward/shared/gather.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ranges>
#include <vector>

#include "core/parallel.hpp"
#include "ops/resample/data_checks.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample_backward {
namespace {

using resample::kTileTargets;
using resample::Tile;

/// Samples below which a trajectory is not cut into slices for several threads.
constexpr std::int64_t kSliceRows = 256;
/// Cost of a target or a sample beside its channels, and microseconds that one thread takes per channel, about.
constexpr std::int64_t kTargetCost = 24;
constexpr double kElement = 0.6e-3;
/// Slices wanted in all, so that threads can balance.
constexpr std::int64_t kSlices = 32;

/// Sums of the sample at hand and of the one after it; rows of the slice are written once each, in order.
template <class Sum>
class RowSums {
 public:
  RowSums(const Problem& problem, const Arguments& arguments, const GatherKernels& kernels, std::int64_t b,
          std::int64_t begin, std::int64_t end)
      : problem_(problem),
        arguments_(arguments),
        kernels_(kernels),
        b_(b),
        begin_(begin),
        end_(end),
        row_(begin),
        sums_(2 * static_cast<std::size_t>(problem.channels)) {
    here_ = sums_.data();
    next_ = here_ + problem.channels;
  }

  /// Target t of the trajectory, between `row` and row + 1; rows never decrease, and none is before begin - 1.
  void add(std::int64_t row, Sum weight, std::int64_t t) {
    const std::int64_t at = std::max(row, begin_);
    while (row_ < at) flush();
    const Rows& from = arguments_.grad_output;
    for (const ChannelGroup& group : problem_.groups) {
      if (resample::over_interval(group.interpolation)) continue;
      const char* channels = from.address(problem_.output, b_, t, group.first);
      const Sum of_next = weight_of_next(group.interpolation, weight);
      // `row` may be the one before the slice, which only lends its second half.
      if (row >= begin_ && row < end_) add_row(here_, group, static_cast<double>(Sum{1} - of_next), channels);
      if (row + 1 >= begin_ && row + 1 < end_)
        add_row(row < begin_ ? here_ : next_, group, static_cast<double>(of_next), channels);
    }
  }

  /// Writes what is left of the slice.
  void finish() {
    while (row_ < end_) flush();
  }

 private:
  static Sum weight_of_next(Interpolation interpolation, Sum weight) {
    switch (interpolation) {
      case Interpolation::previous:
        return weight >= 1 ? Sum{1} : Sum{0};
      case Interpolation::next:
        return weight > 0 ? Sum{1} : Sum{0};
      case Interpolation::nearest:
        return weight > Sum{0.5} ? Sum{1} : Sum{0};
      default:
        return weight;
    }
  }

  void add_row(Sum* sum, const ChannelGroup& group, double weight, const char* gradient) {
    if (weight != 0)
      kernels_.add(sum + group.first, weight, gradient, arguments_.grad_output.channel_stride, group.count);
  }

  void flush() {
    const Rows& to = arguments_.grad_values;
    kernels_.store(here_, to.address(problem_.values, b_, row_), to.channel_stride, problem_.channels);
    std::swap(here_, next_);
    std::fill_n(next_, problem_.channels, Sum{0});
    ++row_;
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const GatherKernels& kernels_;
  std::int64_t b_, begin_, end_, row_;
  std::vector<Sum> sums_;
  Sum* here_;
  Sum* next_;
};

template <class Time, class Sum>
class GatherRun {
 public:
  GatherRun(const Problem& problem, const Arguments& arguments, const GatherKernels& kernels)
      : problem_(problem),
        arguments_(arguments),
        line_(arguments.timeline),
        kernels_(kernels),
        slices_(line_.batch >= kSlices
                    ? 1
                    : std::max<std::int64_t>(1, std::min(kSlices / std::max<std::int64_t>(1, line_.batch),
                                                         problem.longest_source / kSliceRows))),
        sorted_(static_cast<std::size_t>(line_.batch)) {
    for (const ChannelGroup& group : problem.groups)
      nearest_ = nearest_ || group.interpolation == Interpolation::nearest;
  }

  void run() {
    const int threads = threads_for(kElement * (static_cast<double>(line_.target_total()) + source_total()) *
                                    static_cast<double>(kTargetCost + problem_.channels));
    parallel_for(line_.batch, 1 + line_.batch / kSlices, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) sorted_[static_cast<std::size_t>(b)] = targets_sorted(b);
    });
    std::atomic<bool> failed{false};
    const std::int64_t units = line_.batch * slices_;
    parallel_for(units, 1 + units / (4 * kSlices), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end && !failed.load(std::memory_order_relaxed); ++unit)
        if (!slice(unit / slices_, unit % slices_)) failed.store(true, std::memory_order_relaxed);
    });
    if (failed.load()) resample::throw_data_error(problem_, line_, nullptr);
  }

 private:
  double source_total() const {
    return static_cast<double>(line_.source_offsets ? line_.source_offsets[line_.batch]
                                                    : line_.batch * line_.source_rows);
  }
  bool targets_sorted(std::int64_t b) const {
    const std::int64_t targets = line_.target_count(b);
    if (targets < 2 || line_.uniform_grid) return true;
    return kernels_.ordered(line_.target.at<const Time>(b), line_.target.row_stride, 1, targets, false);
  }

  /// One slice of the samples of a trajectory. False on an error in its data.
  bool slice(std::int64_t b, std::int64_t k) const {
    const std::int64_t n = line_.source_count(b);
    const std::int64_t targets = line_.target_count(b);
    if (n == 0)
      return targets == 0 ||
             (line_.outside == Outside::nan && (k > 0 || resample::check_targets(line_, b, 0, targets)));
    const bool whole = slices_ == 1 || !sorted_[static_cast<std::size_t>(b)];
    if (whole && k > 0) return true;
    const std::int64_t begin = whole ? 0 : n / slices_ * k + std::min(k, n % slices_);
    const std::int64_t end = whole ? n : n / slices_ * (k + 1) + std::min(k + 1, n % slices_);
    if (begin == end) return true;
    RowSums<Sum> sums(problem_, arguments_, kernels_, b, begin, end);
    if (targets > 0) {
      if (begin == 0 && !resample::check_ends(line_, b)) return false;
      const std::int64_t pairs = std::max<std::int64_t>(begin, 1);
      if (pairs < end && !kernels_.ordered(line_.source.at<const Time>(b), line_.source.row_stride, pairs, end,
                                           line_.duplicates == Duplicates::error))
        return false;
      if (!(sorted_[static_cast<std::size_t>(b)] ? add_sorted(sums, b, begin, end) : add_unsorted(sums, b)))
        return false;
    }
    sums.finish();
    return true;
  }

  bool add_sorted(RowSums<Sum>& sums, std::int64_t b, std::int64_t begin, std::int64_t end) const {
    const resample::Times<Time> x = resample::source_times<Time>(line_, b);
    const std::int64_t targets = line_.target_count(b);
    // Targets between sample begin - 1 and sample end; the outermost two slices also have what lies outside, which
    // extrapolation gives to the outermost two samples.
    const std::int64_t first = begin <= 1 ? 0 : first_at_or_after(b, x[begin - 1]);
    const std::int64_t last = end + 1 >= x.count ? targets : first_at_or_after(b, x[end]);
    std::int64_t row_before = 0;
    return each_located(b, first, last, [&](std::int64_t t, std::int32_t row, Sum weight) {
      if (row < row_before) return false;  // only with unordered times
      row_before = row;
      if (!std::isnan(weight) && row + 1 >= begin && row < end) sums.add(row, weight, t);
      return true;
    });
  }

  std::int64_t first_at_or_after(std::int64_t b, Time time) const {
    const auto all = std::views::iota(std::int64_t{0}, line_.target_count(b));
    const auto time_of = [&](std::int64_t t) { return resample::target_time<Time>(line_, b, t); };
    return static_cast<std::int64_t>(std::ranges::lower_bound(all, time, {}, time_of) - all.begin());
  }

  /// Calls use(target, row, weight) for targets [first, last). False on an error in the data, or when use() says so.
  template <class Use>
  bool each_located(std::int64_t b, std::int64_t first, std::int64_t last, const Use& use) const {
    const std::int64_t n = line_.source_count(b);
    Tile tile;
    double grid[kTileTargets];
    for (std::int64_t t = first; t < last; t += kTileTargets) {
      const std::int64_t count = std::min<std::int64_t>(kTileTargets, last - t);
      if (!kernels_.locate(resample::locate_request(line_, b, t, count, nearest_, grid), tile)) return false;
      for (std::int64_t k = 0; k < count; ++k) {
        std::int32_t row = tile.row[static_cast<std::size_t>(k)];
        Sum weight = tile.weight.as<Sum>()[k];
        // A target on the last sample is written as the end of the interval before it. Targets that are extrapolated
        // beyond that sample name the same interval, so that all stay in order.
        if (n >= 2 && row == n - 1 && weight == 0) {
          row -= 1;
          weight = 1;
        }
        if (!use(t + k, row, weight)) return false;
      }
    }
    return true;
  }

  /// Targets in any order: put in order of their rows first, the earlier target first within a row.
  bool add_unsorted(RowSums<Sum>& sums, std::int64_t b) const {
    const std::int64_t targets = line_.target_count(b);
    const std::int64_t n = line_.source_count(b);
    struct Located {
      std::int64_t target;
      std::int32_t row;
      Sum weight;
    };
    std::vector<Located> located(static_cast<std::size_t>(targets));
    std::vector<std::int64_t> start(static_cast<std::size_t>(n) + 1, 0);  // counting sort by row
    const bool good = each_located(b, 0, targets, [&](std::int64_t t, std::int32_t row, Sum weight) {
      located[static_cast<std::size_t>(t)] = {t, row, weight};
      ++start[static_cast<std::size_t>(row) + 1];
      return true;
    });
    if (!good) return false;
    for (std::size_t row = 1; row < start.size(); ++row) start[row] += start[row - 1];
    std::vector<std::int64_t> order(static_cast<std::size_t>(targets));
    for (const Located& one : located)
      order[static_cast<std::size_t>(start[static_cast<std::size_t>(one.row)]++)] = one.target;
    for (const std::int64_t t : order) {
      const Located& one = located[static_cast<std::size_t>(t)];
      if (!std::isnan(one.weight)) sums.add(one.row, one.weight, t);
    }
    return true;
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const Timeline& line_;
  const GatherKernels& kernels_;
  std::int64_t slices_;
  std::vector<unsigned char> sorted_;  // per trajectory: targets never decrease
  bool nearest_ = false;
};

}  // namespace

void run_gather(const Problem& problem, const Arguments& arguments, const GatherKernels& kernels) {
  resample::visit_time_type(problem.times, [&]<class Time>(Time*) {
    if (problem.values == DType::f64)
      GatherRun<Time, double>(problem, arguments, kernels).run();
    else
      GatherRun<Time, float>(problem, arguments, kernels).run();
  });
}

}  // namespace tmaops::ops::resample_backward
