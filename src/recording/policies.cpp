#include "core/display.hpp"
#include "core/fail.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {
namespace {

std::optional<std::int64_t> clock_time(const std::string& text, const char* option) {
  if (text.empty()) return {};
  std::int64_t time = 0;
  IsoStyle style;
  if (parse_iso_time(text, time, style) == ParseResult::good ||
      parse_time(text, TimeUnit::seconds, time) == ParseResult::good)
    return time;
  fail(ErrorCode::bad_parameter, option, "'" + display_text(text) + "'",
       "seconds of the recording's clock, or an ISO 8601 time");
}

}  // namespace

TargetWindow parse_window(const Options& options) {
  TargetWindow window{clock_time(options.start, "--start"), clock_time(options.end, "--end")};
  if (window.start && window.end && *window.start > *window.end)
    fail(ErrorCode::bad_parameter, "--start",
         seconds_text(*window.start) + ", after --end " + seconds_text(*window.end), "a start before the end");
  if (!(options.snap >= 0) || time_from_f64(options.snap, TimeUnit::seconds, window.snap) != ParseResult::good)
    fail(ErrorCode::bad_parameter, "--snap", real_text(options.snap), "from 0 to 9.2e9 seconds");
  return window;
}

Policies make_policies(const Options& options, const Defaults& defaults) {
  Policies policies;
  policies.outside = options.outside.empty() ? defaults.outside : options.outside;
  policies.outside_mode = policies.outside == "hold"          ? Outside::hold
                          : policies.outside == "extrapolate" ? Outside::extrapolate
                          : policies.outside == "error"       ? Outside::error
                                                              : Outside::nan;
  const bool last_wins = options.duplicates.empty() ? defaults.last_duplicate_wins : options.duplicates == "last";
  policies.duplicates = last_wins ? Duplicates::last : Duplicates::error;
  policies.drop_gaps = defaults.drop_gaps;
  if (options.max_gap) {
    const auto result = time_from_f64(*options.max_gap, TimeUnit::seconds, policies.max_gap);
    if (result != ParseResult::good || policies.max_gap <= 0)
      fail(ErrorCode::bad_parameter, "--max-gap", real_text(*options.max_gap), "from 1e-9 to 9.2e9 seconds");
  }
  return policies;
}

}  // namespace tmaops::recording
