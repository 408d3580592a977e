// Usual names of columns of times, and the units that names state.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recording/decimal.hpp"

namespace tmaops::recording {

/// The unit that a name states in brackets or as its ending: "timestamp [ns]", "time_us", "t(ms)", "time_sec". Also
/// ns for %time and field.header.stamp, which are ROS times in nanoseconds in what `rostopic echo -p` writes.
std::optional<TimeUnit> unit_in_name(std::string_view name);
/// The name with another unit instead of the one it states, or without a unit.
std::string name_with_unit(const std::string& name, std::optional<TimeUnit> unit);

/// Indices of the usual names of times, in any case and with any unit behind them. The most usual name comes first, and
/// of one name in several units the one in seconds.
std::vector<std::size_t> find_time_names(const std::vector<std::string>& names);
/// Other names that contain time, stamp, clock or date.
std::vector<std::size_t> names_like_times(const std::vector<std::string>& names);

/// Whole seconds and their whole fractions: header.stamp.secs and header.stamp.nsecs, sec and nanosec as ROS has them,
/// tv_sec and tv_usec.
struct TimePair {
  std::size_t seconds = 0;
  std::size_t fraction = 0;
  TimeUnit unit = TimeUnit::nanoseconds;  // of the fraction
  bool certain = true;  // by the names; those of timestamp_s and timestamp_ns may have all of the time each
};
std::vector<TimePair> find_time_pairs(const std::vector<std::string>& names);

/// Whether a column of this name may be the times, or the mask of rows with data.
bool reads_text(const std::string& name);

/// `name`, or name_2, name_3, ... where that is in `taken`. The result is added to `taken`.
std::string unique_name(const std::string& name, std::set<std::string>& taken);

}  // namespace tmaops::recording
