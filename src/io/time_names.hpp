// What columns of times are called, and which unit their names state.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/decimal.hpp"

namespace tmaops::io {

/// The unit that a name states in brackets or as its ending: "timestamp [ns]", "time_us", "t(ms)", "time_sec". Also
/// ns for %time and field.header.stamp, which are ROS times in nanoseconds in what `rostopic echo -p` writes.
std::optional<TimeUnit> unit_in_name(std::string_view name);
/// The name with another unit in the place of the one it states, or without any.
std::string name_with_unit(const std::string& name, std::optional<TimeUnit> unit);

/// Indices of the names that are usual ones of times, in any case and with any unit behind them: the most usual first,
/// and each name's first occurrence first.
std::vector<std::size_t> find_time_names(const std::vector<std::string>& names);
/// The names that sound like times (a word of them is time, stamp, clock or date) beside the usual ones.
std::vector<std::size_t> names_like_times(const std::vector<std::string>& names);

/// Whole seconds and nanoseconds as ROS has them: header.stamp.secs and header.stamp.nsecs, sec and nanosec.
struct TimePair {
  std::size_t seconds = 0;
  std::size_t nanoseconds = 0;
};
std::vector<TimePair> find_time_pairs(const std::vector<std::string>& names);

/// `name`, or name_2, name_3, ... where that is taken already; it is taken then.
std::string unique_name(const std::string& name, std::set<std::string>& taken);
std::string lower_case(std::string_view text);

}  // namespace tmaops::io
