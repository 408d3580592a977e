#include "cli/resample_targets.hpp"

#include <cmath>

#include "io/decimal.hpp"
#include "io/file_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

// A wrong unit of time shows as an absurd number of targets: more than this, and more than so many per sample.
constexpr double kManyTargets = 1e8;
constexpr double kManyPerSample = 100;

void check_count(double count, const io::Recording& recording, const std::string& option) {
  if (count > kManyTargets && count > kManyPerSample * static_cast<double>(recording.rows()))
    throw Error(ErrorCode::bad_parameter,
                {.where = option,
                 .got = io::real_text(count) + " targets for " + std::to_string(recording.rows()) + " samples",
                 .needed = "at most 100 targets for each sample",
                 .mend = "Is the unit of the times right? --time-unit names it."});
}

ResampleTargets uniform(double hz, const io::Recording& recording) {
  if (!(hz > 0) || hz > 1e9)
    throw Error(
        ErrorCode::bad_parameter,
        {.where = "--hz", .got = io::real_text(hz), .needed = "more than 0, and at most 1e9 samples per second"});
  // 64 bits of mantissa: i * 10^9 is exact up to 18 thousand million targets, and the quotient is rounded once.
  const long double per_second = 1e9L;
  const auto point = [&](std::int64_t i) {
    return std::round(static_cast<long double>(i) * per_second / static_cast<long double>(hz));
  };
  ResampleTargets targets;
  targets.offsets.push_back(0);
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e) {
    const auto first_row = static_cast<std::size_t>(recording.offsets[e]);
    const auto end_row = static_cast<std::size_t>(recording.offsets[e + 1]);
    if (first_row < end_row) {
      const std::int64_t first = recording.times[first_row];
      std::int64_t span = 0;
      if (__builtin_sub_overflow(recording.times[end_row - 1], first, &span))
        throw Error(ErrorCode::time_overflow, {.where = recording.where,
                                               .got = "times from " + std::to_string(first) + " to " +
                                                      std::to_string(recording.times[end_row - 1]) + " ns",
                                               .needed = "a span within 292 years"});
      const double estimate = static_cast<double>(span) * hz / 1e9;
      check_count(static_cast<double>(targets.times.size()) + estimate, recording, "--hz " + io::real_text(hz));
      // Compared before it becomes an integer: the step of a tiny rate is beyond 64 bits.
      for (std::int64_t i = 0; point(i) <= static_cast<long double>(span); ++i)
        targets.times.push_back(first + static_cast<std::int64_t>(point(i)));
    }
    targets.offsets.push_back(static_cast<std::int64_t>(targets.times.size()));
  }
  return targets;
}

}  // namespace

ResampleTargets make_targets(const ResampleCommand& command, const io::Recording& recording) {
  if (command.hz.has_value() + command.times.has_value() + command.like.has_value() != 1)
    throw Error(ErrorCode::usage,
                {.where = "resample", .got = "not one of --hz, --times and --like", .needed = "exactly one of them"});
  if (command.hz) return uniform(*command.hz, recording);
  io::ReadOptions options;
  options.unit = io::parse_time_unit(command.time_unit);
  const std::filesystem::path& path = command.times ? *command.times : *command.like;
  options.format_option = "an extension";
  options.times_name = command.targets_array;
  options.times_option = "--targets-array";
  const std::vector<std::int64_t> times = io::read_times(path, options);
  if (times.empty())
    throw Error(ErrorCode::bad_parameter,
                {.where = io::display(path), .got = "no target times", .needed = "at least one target"});
  const auto episodes = recording.offsets.size() - 1;
  check_count(static_cast<double>(times.size()) * static_cast<double>(episodes), recording,
              command.times ? "--times" : "--like");
  ResampleTargets targets;
  targets.offsets.push_back(0);
  for (std::size_t e = 0; e < episodes; ++e) {
    targets.times.insert(targets.times.end(), times.begin(), times.end());
    targets.offsets.push_back(static_cast<std::int64_t>(targets.times.size()));
  }
  return targets;
}

}  // namespace tmaops::cli
