#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/resample_steps.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "io/decimal.hpp"
#include "io/iso_time.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

// A wrong unit of time shows as an absurd number of targets: more than this, and more than so many per sample.
constexpr double kManyTargets = 1e8;
constexpr double kManyPerSample = 100;

void check_count(double count, const io::Recording& recording, const std::string& option) {
  if (count > kManyTargets && count > kManyPerSample * static_cast<double>(recording.rows()))
    fail(ErrorCode::bad_parameter, option,
         io::real_text(count) + " targets for " + std::to_string(recording.rows()) + " samples",
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

ResampleTargets uniform(const ResampleCommand& command, const TargetWindow& window, const io::Recording& recording) {
  const double hz = *command.hz;
  if (!(hz > 0) || hz > 1e9)
    fail(ErrorCode::bad_parameter, "--hz", io::real_text(hz), "more than 0, and at most 1e9 samples per second");
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
      const __int128 origin = command.align ? 0 : window.start.value_or(recording.times[first_row]);
      const __int128 early = first - window.snap, late = last + window.snap;
      const __int128 from = window.start ? std::max<__int128>(early, *window.start) : command.align ? early : first;
      const __int128 to = window.end ? std::min<__int128>(late, *window.end) : late;
      const double span = to < from ? 0 : static_cast<double>(to - from);
      check_count(static_cast<double>(targets.times.size()) + span * hz / 1e9, recording, "--hz " + io::real_text(hz));
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
    fail(ErrorCode::bad_parameter, "--hz " + io::real_text(hz), "no target",
         "a grid with a point between the first sample, at " + seconds_text(recording.times.front()) +
             ", and the last, at " + seconds_text(recording.times.back()),
         "Check --start, --end and --align.");
  return targets;
}

/// The file of --times or --like. Its unit is the one of --times-unit or --like-unit; else the one that the file itself
/// states; else that of --time-unit.
io::Recording read_target_file(const ResampleCommand& command, const std::filesystem::path& path) {
  const std::string unit_option = command.times ? "--times-unit" : "--like-unit";
  io::ReadOptions options;
  options.unit = io::parse_time_unit(command.times ? command.times_unit : command.like_unit);
  options.format_option = "an extension";
  options.times_name = command.targets_array;
  options.times_option = "--targets-array";
  options.trust_sizes = command.trust_sizes;
  try {
    io::Recording file = io::read_times_only(path, options);
    if (command.like && io::file_format_of(path, options.format_option) == io::FileFormat::tum && !options.unit) {
      file.time.choice = io::TimeChoice::format;
      file.time.unit_source = io::UnitSource::format;  // a trajectory is in seconds
    }
    if (options.unit || command.time_unit.empty() || file.time.unit_source != io::UnitSource::usual) return file;
    options.unit = io::parse_time_unit(command.time_unit);
    return io::read_times_only(path, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::empty_trajectory)
      fail(ErrorCode::bad_parameter, display(path), "no target times", "at least one target");
    if (error.code() != ErrorCode::time_overflow) throw;
    ErrorDetails details = error.details();
    details.mend = "Name the unit of this file with " + unit_option + ".";
    throw Error(error.code(), details);
  }
}

ResampleTargets from_file(const ResampleCommand& command, const TargetWindow& window, const io::Recording& recording) {
  const char* option = command.times ? "--times" : "--like";
  if (command.align) fail(ErrorCode::usage, "--align", option, "--hz, whose grid it aligns");
  const std::filesystem::path& path = command.times ? *command.times : *command.like;
  const io::Recording file = read_target_file(command, path);
  std::vector<std::int64_t> times = file.times;
  if (times.empty()) fail(ErrorCode::bad_parameter, display(path), "no target times", "at least one target");
  std::erase_if(times, [&](std::int64_t time) {
    return (window.start && time < *window.start) || (window.end && time > *window.end);
  });
  if (times.empty())
    fail(ErrorCode::bad_parameter, display(path), "no target from --start to --end", "at least one target");
  const auto episodes = recording.offsets.size() - 1;
  check_count(static_cast<double>(times.size()) * static_cast<double>(episodes), recording, option);
  ResampleTargets targets;
  const bool own_unit = !command.times_unit.empty() || !command.like_unit.empty();
  const char* unit_option = !own_unit ? "--time-unit" : command.times ? "--times-unit" : "--like-unit";
  targets.file = display(path) + ", " + summarise_times(file, {}).text("--targets-array", unit_option);
  for (const std::string& warning : file.warnings) targets.warnings.push_back(display(path) + ": " + warning);
  targets.offsets.push_back(0);
  for (std::size_t e = 0; e < episodes; ++e) {
    targets.times.insert(targets.times.end(), times.begin(), times.end());
    targets.offsets.push_back(static_cast<std::int64_t>(targets.times.size()));
  }
  return targets;
}

/// A target takes the time of the nearest sample where that is within `snap`; the earlier of two that are equally near.
void snap_to_samples(const io::Recording& recording, std::int64_t snap, ResampleTargets& targets) {
  targets.sample_times = targets.times;
  if (snap == 0) return;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e) {
    const auto first = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    for (std::int64_t t = targets.offsets[e]; t < targets.offsets[e + 1]; ++t) {
      std::int64_t& time = targets.sample_times[static_cast<std::size_t>(t)];
      const auto after = std::lower_bound(first, end, time);
      __int128 best = snap + static_cast<__int128>(1);
      std::int64_t nearest = time;
      for (const auto sample : {after == first ? end : after - 1, after}) {
        if (sample == end) continue;
        const __int128 distance =
            *sample > time ? static_cast<__int128>(*sample) - time : static_cast<__int128>(time) - *sample;
        if (distance >= best) continue;
        best = distance;
        nearest = *sample;
      }
      targets.snapped += nearest != time;
      time = nearest;
    }
  }
}

std::optional<std::int64_t> clock_time(const std::string& text, const char* option) {
  if (text.empty()) return {};
  std::int64_t time = 0;
  io::IsoStyle style;
  const bool date = io::looks_like_date(text);
  if ((date ? io::parse_iso_time(text, time, style) : io::parse_time(text, io::TimeUnit::seconds, time)) ==
      io::ParseResult::good)
    return time;
  fail(ErrorCode::bad_parameter, option, "'" + display_text(text) + "'",
       "seconds of the recording's clock, or an ISO 8601 time");
}

}  // namespace

TargetWindow parse_window(const ResampleCommand& command) {
  TargetWindow window{clock_time(command.start, "--start"), clock_time(command.end, "--end")};
  if (window.start && window.end && *window.start > *window.end)
    fail(ErrorCode::bad_parameter, "--start",
         seconds_text(*window.start) + ", after --end " + seconds_text(*window.end), "a start before the end");
  if (!(command.snap >= 0) ||
      io::time_from_f64(command.snap, io::TimeUnit::seconds, window.snap) != io::ParseResult::good)
    fail(ErrorCode::bad_parameter, "--snap", io::real_text(command.snap), "from 0 to 9.2e9 seconds");
  return window;
}

ResampleTargets make_targets(const ResampleCommand& command, const TargetWindow& window,
                             const io::Recording& recording) {
  if (command.hz.has_value() + command.times.has_value() + command.like.has_value() != 1)
    fail(ErrorCode::usage, "resample", "not one of --hz, --times and --like", "exactly one of them");
  ResampleTargets targets = command.hz ? uniform(command, window, recording) : from_file(command, window, recording);
  snap_to_samples(recording, window.snap, targets);
  return targets;
}

}  // namespace tmaops::cli
