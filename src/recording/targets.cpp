#include <algorithm>
#include <cmath>
#include <limits>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "recording/decimal.hpp"
#include "recording/iso_time.hpp"
#include "recording/steps.hpp"
#include "tmaops/error.hpp"

namespace tmaops::recording {
namespace {

// A wrong unit of time shows as an absurd number of targets: more than this, and more than so many per sample.
constexpr double kManyTargets = 1e8;
constexpr double kManyPerSample = 100;

void check_count(double count, const Recording& recording, const std::string& option) {
  if (count > kManyTargets && count > kManyPerSample * static_cast<double>(recording.rows()))
    fail(ErrorCode::bad_parameter, option,
         real_text(count) + " targets for " + std::to_string(recording.rows()) + " samples",
         "at most 100 targets for each sample", "Is the unit of the times right? --time-unit names it.");
}

constexpr __int128 kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();

/// Points i / hz after an origin, rounded to the nanosecond.
class Grid {
 public:
  explicit Grid(double hz) : hz_(hz), whole_(hz == std::floor(hz) ? static_cast<std::int64_t>(hz) : 0) {}

  long double estimate(std::int64_t i) const {
    return static_cast<long double>(i) * 1e9L / static_cast<long double>(hz_);
  }
  /// Exact for a whole number of points per second; otherwise i * 10^9 has the 64 bits of a long double, and the
  /// quotient is rounded once. Only for points that estimate() finds within 63 bits.
  __int128 operator()(std::int64_t i) const {
    if (whole_ == 0) return static_cast<__int128>(std::round(estimate(i)));
    const __int128 twice = static_cast<__int128>(i) * 2'000'000'000 + (i < 0 ? -whole_ : whole_);
    return twice / (2 * static_cast<__int128>(whole_));
  }
  /// The last index whose point is at or before `time`, or a little earlier.
  std::int64_t index_before(__int128 time) const {
    return static_cast<std::int64_t>(
               std::floor(static_cast<long double>(time) * static_cast<long double>(hz_) / 1e9L)) -
           1;
  }

 private:
  double hz_;
  std::int64_t whole_;
};

ResampleTargets uniform(const Options& options, const TargetWindow& window, const Recording& recording) {
  const double hz = *options.hz;
  if (!(hz > 0) || hz > 1e9)
    fail(ErrorCode::bad_parameter, "--hz", real_text(hz), "more than 0, and at most 1e9 samples per second");
  const Grid grid(hz);
  ResampleTargets targets;
  targets.offsets.push_back(0);
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e) {
    const auto first_row = static_cast<std::size_t>(recording.offsets[e]);
    const auto end_row = static_cast<std::size_t>(recording.offsets[e + 1]);
    if (first_row < end_row) {
      const __int128 first = recording.times[first_row], last = recording.times[end_row - 1];
      if (last - first > std::numeric_limits<std::int64_t>::max())
        fail(ErrorCode::time_overflow, recording.where,
             "times from " + std::to_string(recording.times[first_row]) + " to " +
                 std::to_string(recording.times[end_row - 1]) + " ns",
             "a span within 292 years");
      const __int128 origin = options.align ? 0 : window.start.value_or(recording.times[first_row]);
      const __int128 early = first - window.snap, late = last + window.snap;
      const __int128 from = window.start ? std::max<__int128>(early, *window.start) : options.align ? early : first;
      const __int128 to = window.end ? std::min<__int128>(late, *window.end) : late;
      const double span = to < from ? 0 : static_cast<double>(to - from);
      check_count(static_cast<double>(targets.times.size()) + span * hz / 1e9, recording, "--hz " + real_text(hz));
      std::int64_t i = origin == from ? 0 : grid.index_before(from - origin);
      // Compared before it becomes an integer: the step of a tiny rate is beyond 64 bits.
      for (; grid.estimate(i) <= static_cast<long double>(to - origin) + 1; ++i) {
        if (grid.estimate(i) < static_cast<long double>(from - origin) - 1) continue;
        const __int128 point = origin + grid(i);
        if (point >= std::max(from, kLeast) && point <= std::min(to, kMost))
          targets.times.push_back(static_cast<std::int64_t>(point));
      }
    }
    targets.offsets.push_back(static_cast<std::int64_t>(targets.times.size()));
  }
  if (targets.times.empty() && recording.rows() != 0)
    fail(ErrorCode::bad_parameter, "--hz " + real_text(hz), "no target",
         "a grid with a point between the first sample, at " + seconds_text(recording.times.front()) +
             ", and the last, at " + seconds_text(recording.times.back()),
         "Check --start, --end and --align.");
  return targets;
}

ResampleTargets from_given(const Options& options, const TargetWindow& window, const Recording& recording,
                           const GivenTargets& given) {
  if (options.align) fail(ErrorCode::usage, "--align", given.option, "--hz, whose grid it aligns");
  if (!given.offsets.empty()) {
    if (given.offsets.size() != recording.offsets.size() || given.offsets.front() != 0 ||
        given.offsets.back() != static_cast<std::int64_t>(given.times.size()) ||
        !std::is_sorted(given.offsets.begin(), given.offsets.end()))
      fail(ErrorCode::bad_offsets, "target_offsets", std::to_string(given.offsets.size()) + " offsets",
           std::to_string(recording.offsets.size()) + " that never decrease, from 0 to " +
               std::to_string(given.times.size()));
    return {.times = given.times, .offsets = given.offsets};
  }
  std::vector<std::int64_t> times = given.times;
  if (times.empty()) fail(ErrorCode::bad_parameter, given.where, "no target times", "at least one target");
  std::erase_if(times, [&](std::int64_t time) {
    return (window.start && time < *window.start) || (window.end && time > *window.end);
  });
  if (times.empty())
    fail(ErrorCode::bad_parameter, given.where, "no target from --start to --end", "at least one target");
  const auto episodes = recording.offsets.size() - 1;
  check_count(static_cast<double>(times.size()) * static_cast<double>(episodes), recording, given.option);
  ResampleTargets targets;
  targets.offsets.push_back(0);
  for (std::size_t e = 0; e < episodes; ++e) {
    targets.times.insert(targets.times.end(), times.begin(), times.end());
    targets.offsets.push_back(static_cast<std::int64_t>(targets.times.size()));
  }
  return targets;
}

/// A target takes the time of the nearest sample where that is within `snap`; the earlier of two that are equally near.
void snap_to_samples(const Recording& recording, std::int64_t snap, ResampleTargets& targets) {
  targets.sample_times = targets.times;
  if (snap == 0) return;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e) {
    const auto first = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    for (std::int64_t t = targets.offsets[e]; t < targets.offsets[e + 1]; ++t) {
      std::int64_t& time = targets.sample_times[static_cast<std::size_t>(t)];
      const auto after = std::lower_bound(first, end, time);
      const auto distance = [&](auto sample) {
        return sample == end ? kMost + kMost : std::max<__int128>(*sample, time) - std::min(*sample, time);
      };
      const auto nearest = after == first || distance(after) < distance(after - 1) ? after : after - 1;
      if (distance(nearest) > snap) continue;
      targets.snapped += *nearest != time;
      time = *nearest;
    }
  }
}

}  // namespace

ResampleTargets make_targets(const Options& options, const TargetWindow& window, const Recording& recording,
                             const GivenTargets* given) {
  if (options.hz.has_value() == (given != nullptr))
    fail(ErrorCode::usage, "resample", "not one of --hz, --times and --like", "exactly one of them");
  ResampleTargets targets =
      options.hz ? uniform(options, window, recording) : from_given(options, window, recording, *given);
  snap_to_samples(recording, window.snap, targets);
  return targets;
}

}  // namespace tmaops::recording
