#include "recording/time_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/spelling.hpp"

namespace tmaops::recording {
namespace {

// The usual names, without their units, the most usual first. EuRoC, TUM tools, LeRobot and robomimic write timestamp;
// ROS tools write header.stamp, %time and Time; PlotJuggler __time; rosbag exports rosbagTimestamp.
constexpr std::string_view kUsual =
    "timestamp,timestamps,time,times,t,stamp,stamps,ts,time_stamp,time_stamps,header.stamp,header_stamp,"
    "header/stamp,field.header.stamp,%time,__time,rosbagtimestamp,datetime,date_time,utc,utc_time,"
    "utime,unix_time,unixtime,unix_timestamp,elapsed,elapsed_time,time_elapsed,seconds,secs,sec,"
    "seconds_elapsed,elapsed_seconds,epoch,monotonic,tick,ticks,gps_time,gpstime,gps_seconds,gps_second,gpsseconds,"
    "gpssecond,gps_tow,gps_sow,tow,itow,sow,time_of_week,seconds_of_week,gps_seconds_of_week";

struct UnitWords {
  TimeUnit unit;
  std::array<std::string_view, 7> words;  // the first is the unit's own name
};
constexpr std::array<UnitWords, 4> kUnits{
    {{TimeUnit::nanoseconds, {"ns", "nsec", "nsecs", "nanosec", "nanosecs", "nanoseconds", "nanos"}},
     {TimeUnit::microseconds, {"us", "usec", "usecs", "microseconds", "micros", "\xc2\xb5s", "\xce\xbcs"}},
     {TimeUnit::milliseconds, {"ms", "msec", "msecs", "milliseconds", "millis"}},
     {TimeUnit::seconds, {"s", "sec", "secs", "seconds"}}}};

/// The place of a stated unit in a name.
struct Stated {
  std::size_t start = 0;   // of the whole ending
  std::size_t length = 0;  // of the ending
  char style = '_';        // '_', '[' or '('
  TimeUnit unit = TimeUnit::seconds;
};

std::optional<TimeUnit> unit_of_word(std::string_view word) {
  for (const auto& [unit, words] : kUnits)
    for (const std::string_view known : words)
      if (!known.empty() && word == known) return unit;
  return {};
}

std::optional<Stated> stated_unit(std::string_view name) {
  const std::string lower = lower_case(name);
  const std::string_view text = lower;
  for (const std::string_view style : {"[]", "()", "_"}) {
    const std::size_t at = text.rfind(style[0]), closing = style.size() - 1;
    if (at == std::string_view::npos || (closing != 0 && text.back() != style[1])) continue;
    if (const auto unit = unit_of_word(text.substr(at + 1, text.size() - at - 1 - closing)))
      return Stated{at, text.size() - at, style[0], *unit};
  }
  for (std::size_t at = name.size(); at-- > 1;)  // timeMs, TimeUS, timestampNanos
    if (std::isupper(name[at]) && std::islower(name[at - 1])) {
      const auto unit = name.size() > at + 1 ? unit_of_word(text.substr(at)) : std::nullopt;
      return unit ? std::optional(Stated{at, name.size() - at, '_', *unit}) : std::nullopt;
    }
  return {};
}

// Lower case, without units, the blanks around them and the # of a comment's line, words joined by "_".
std::string bare(std::string_view name) {
  std::string text(name.substr(std::min(name.find_first_not_of("# "), name.size())));
  while (const auto stated = stated_unit(text)) {
    text.resize(stated->start);
    while (text.ends_with(' ')) text.pop_back();
  }
  std::ranges::replace(text, ' ', '_');
  return lower_case(text);
}

}  // namespace

std::optional<TimeUnit> unit_in_name(std::string_view name) {
  if (const auto stated = stated_unit(name)) return stated->unit;
  if (name == "%time" || name == "field.header.stamp") return TimeUnit::nanoseconds;
  const std::string lower = lower_case(name);
  for (const std::string_view seconds : {"seconds", "secs", "sec", "seconds_elapsed"})
    if (lower == seconds) return TimeUnit::seconds;
  if (lower == "itow") return TimeUnit::milliseconds;  // of u-blox
  return {};
}

std::string name_with_unit(const std::string& name, std::optional<TimeUnit> unit) {
  const auto stated = stated_unit(name);
  std::string changed = stated ? name.substr(0, stated->start) : name;
  if (!unit) {
    while (changed.ends_with(' ')) changed.pop_back();
    return changed;
  }
  const std::string text(to_string(*unit));
  if (!stated || stated->style == '_') return changed + "_" + text;
  return changed + (stated->style == '[' ? "[" + text + "]" : "(" + text + ")");
}

std::vector<std::size_t> find_time_names(const std::vector<std::string>& names) {
  std::vector<std::string> bare_names;
  for (const std::string& name : names) bare_names.push_back(bare(name));
  std::vector<std::size_t> found;
  static const std::vector<std::string> kNames = split_list(kUsual);
  for (const std::string& usual : kNames) {
    const auto first = std::ssize(found);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (bare_names[i] == usual) found.push_back(i);
    std::stable_sort(found.begin() + first, found.end(), [&](std::size_t a, std::size_t b) {
      const auto one = stated_unit(names[a]), other = stated_unit(names[b]);
      return (one ? one->unit : TimeUnit::seconds) < (other ? other->unit : TimeUnit::seconds);
    });
  }
  return found;
}

std::vector<std::size_t> names_like_times(const std::vector<std::string>& names) {
  static const std::vector<std::string> kWords =
      split_list("time,stamp,clock,date,zeit,tiempo,tempo,tijd,czas,время,时间,時間,時刻");
  const std::vector<std::size_t> usual = find_time_names(names);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string lower = lower_case(names[i]);
    const auto has = [&](const std::string& word) { return lower.find(word) != std::string::npos; };
    if (std::ranges::find(usual, i) == usual.end() && std::ranges::any_of(kWords, has)) found.push_back(i);
  }
  for (std::size_t i = 0; usual.empty() && found.empty() && i < names.size(); ++i)  // X[s] of Delsys
    if (const auto unit = stated_unit(names[i]); unit && unit->style != '_') return {i};
  return found;
}

std::vector<TimePair> find_time_pairs(const std::vector<std::string>& names) {
  std::vector<TimePair> found;
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const std::string_view seconds : kUnits.back().words) {
      const std::string lower = lower_case(names[i]);
      if (seconds.empty() || !lower.ends_with(seconds)) continue;
      const std::string start = lower.substr(0, lower.size() - seconds.size());
      // The ending is the whole name or a whole word of it: "nsecs" does not end in the word "secs".
      const bool word = start.empty() || std::string_view("._/ ").find(start.back()) != std::string_view::npos;
      if (!word && !std::isupper(names[i][start.size()])) continue;  // stampSec, stampNanosec
      for (std::size_t k = 0; k < names.size(); ++k) {
        const std::string other = lower_case(names[k]);
        const auto unit =
            other.starts_with(start) ? unit_of_word(std::string_view(other).substr(start.size())) : std::nullopt;
        if (unit && *unit != TimeUnit::seconds)
          found.push_back(
              {i, k, *unit, seconds.size() > 1 && *unit == TimeUnit::nanoseconds && !other.ends_with("ns")});
      }
    }
  return found;
}

bool reads_text(const std::string& name) {
  return name == "valid" || !find_time_names({name}).empty() || !names_like_times({name}).empty();
}

std::string unique_name(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = name + "_" + std::to_string(n);
  return unique;
}

}  // namespace tmaops::recording
