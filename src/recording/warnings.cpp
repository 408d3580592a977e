// Warnings about a resampling, found before anything is written.
#include <algorithm>
#include <cmath>

#include "core/display.hpp"
#include "recording/decimal.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {
namespace {

// A wrong unit of time is wrong by a factor of 1,000 or more. Every usual rate lies between these bounds.
constexpr double kMostPerSample = 100;
constexpr double kFewestPerSample = 0.01;
// f32 times whose resolution is coarser than this part of a step move the values.
constexpr double kResolvedStep = 1e-3;

std::string counted(double value) { return real_text(std::round(value * 1e4) / 1e4); }

std::string range_text(const std::vector<std::int64_t>& times) {
  const auto [least, greatest] = std::minmax_element(times.begin(), times.end());
  return seconds_text(*least) + " to " + seconds_text(*greatest);
}

/// How many rows inside an episode begin another one, by a flag of last or first steps.
std::int64_t episodes_inside(const Recording& recording, const Column& column) {
  const bool first = named_first(column.name);
  if (!(first || named_end(column.name)) || column.width() != 1 || !is_flag(column.data)) return 0;
  const auto set = [&](std::int64_t row) { return element_f64(column.data, row) == 1; };
  std::int64_t found = 0;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row)
      found += first ? set(row) : set(row - 1) && !set(row);
  return found;
}

/// Whether each row is of one of a few signals, which take turns: every second row or more has another value of the
/// column, of text, or of whole numbers where rows of one value lie nearer to each other than neighbours do.
bool names_signals(const Recording& recording, const Column& column) {
  constexpr std::size_t kLookedAt = 256, kOfEach = 4, kFarther = 3;
  const ElementKind kind = column.data.type.kind;
  const bool text = kind == ElementKind::text || kind == ElementKind::row;
  if (column.width() != 1 || !(text || kind == ElementKind::integer)) return false;
  const auto signals = number_values(column.data, std::min<std::int64_t>(recording.rows(), kLookedAt));
  const std::size_t count = std::ranges::max(signals) + 1;
  std::size_t turns = 1;
  for (std::size_t row = 1; row < signals.size(); ++row) turns += signals[row] != signals[row - 1];
  if (count < 2 || kOfEach * count > signals.size() || 2 * turns < signals.size()) return false;
  return text || std::ranges::any_of(recording.columns, [&](const Column& each) {
           if (each.data.type.kind != ElementKind::real || each.width() < 1) return false;
           std::vector<double> last(count, std::nan(""));
           double before = 0, far = 0, near = 0;  // sums over rows whose signal was there before
           for (std::size_t row = 0; row < signals.size(); ++row) {
             const double now = element_f64(each.data, static_cast<std::int64_t>(row) * each.width());
             if (!std::isfinite(now)) continue;
             double& own = last[signals[row]];
             if (own == own) near += std::abs(now - own), far += std::abs(now - before);
             own = before = now;
           }
           return far > kFarther * near;
         });
}

}  // namespace

void warn_of_recording(const Recording& recording, std::vector<Note>& warnings) {
  warnings.insert(warnings.end(), recording.warnings.begin(), recording.warnings.end());
  for (const std::string& name : recording.other_time_names)
    warnings.push_back({"other_time_name", "'" + display_text(name) + "' is named like a time too; the times are '" +
                                               display_text(recording.time.name) + "' (--times-array names another)"});
  for (const Column& column : recording.columns) {
    const std::string name = "column '" + display_text(column.name) + "' ";
    const std::int64_t filled = column.data.size() - column.missing;
    if (column.data.type.kind == ElementKind::text && column.from_text && 2 * column.numeric_fields > filled &&
        column.numeric_fields > 0)
      warnings.push_back({"numbers_in_text",
                          name + "is text, though " + std::to_string(column.numeric_fields) + " of " +
                              std::to_string(column.data.size()) + " fields are numbers or begin with one" +
                              (column.first_other.empty() ? "" : "; the first other one is " + column.first_other)});
    if (column.data.size() > 0 && 2 * column.missing > column.data.size())
      warnings.push_back({"mostly_missing", name + "is mostly missing: " + std::to_string(column.missing) + " of " +
                                                std::to_string(column.data.size()) + " values"});
    if (names_signals(recording, column))
      warnings.push_back({"signals_take_turns",
                          name + "tells which of several signals a row is of, and they take turns: values of one are "
                                 "interpolated into those of another (--group COLUMN parts them)"});
    if (const std::int64_t inside = episodes_inside(recording, column); inside > 0)
      warnings.push_back({"several_episodes",
                          display_text(column.name) + " tells of " + std::to_string(inside + 1) +
                              " episodes in what is taken for one, which mixes the last rows of each with the first of "
                              "the next (--group COLUMN parts them)"});
  }
}

void warn_of_targets(const Options& options, const Recording& recording, const GivenTargets* given,
                     const ResampleTargets& targets, const Steps& steps, const TargetWindow& window,
                     std::vector<Note>& warnings) {
  if (given != nullptr) warnings.insert(warnings.end(), given->warnings.begin(), given->warnings.end());
  if (given != nullptr && given->time.unit_source == UnitSource::step && given->time.unit != recording.time.unit)
    warnings.push_back({"target_unit", given->option + " is in " + std::string(to_string(given->time.unit)) +
                                           " by the size of its steps, and the recording in " +
                                           std::string(to_string(recording.time.unit)) + " (" + given->unit_option +
                                           " says which)"});
  const auto rows = static_cast<double>(recording.rows()), count = static_cast<double>(targets.times.size());
  const bool cut = !options.start.empty() || !options.end.empty();
  if (options.hz && ((!cut && rows >= 2 && count < kFewestPerSample * rows) || count > kMostPerSample * rows))
    warnings.push_back(
        {"targets_per_sample",
         counted(count / rows) + " targets per sample: is the unit of the times right? The samples span " +
             seconds_text(recording.times.back() - recording.times.front()) + " (--time-unit names another unit)"});
  if (recording.time.coarse) {
    const TimeUnit unit = recording.time.unit;
    const double largest = std::max(std::abs(time_to_f64(recording.times.front(), unit)),
                                    std::abs(time_to_f64(recording.times.back(), unit)));
    const auto nanoseconds = static_cast<double>(nanoseconds_of(unit));
    const double resolution = largest == 0 ? 0 : std::ldexp(nanoseconds, std::ilogb(largest) - 23);
    if (resolution > kResolvedStep * static_cast<double>(steps.median))
      warnings.push_back({"time_coarse", "the times are of a type of 32 bits or less, which resolves " +
                                             seconds_text(static_cast<std::int64_t>(resolution)) + " at " +
                                             range_text(recording.times) +
                                             ": write them as f64 seconds or int64 nanoseconds"});
  }
  if (window.snap != 0 && steps.median != 0 && window.snap > steps.median / 2)
    warnings.push_back({"snap_wide", "--snap " + seconds_text(window.snap) + " is more than half of the median step, " +
                                         seconds_text(steps.median) +
                                         ": targets between samples lose their interpolation"});
  if (options.hz || targets.times.empty()) return;
  const auto [first, last] = std::minmax_element(targets.times.begin(), targets.times.end());
  const auto [from, to] = std::minmax_element(recording.times.begin(), recording.times.end());
  if (*last < *from || *first > *to)
    warnings.push_back({"all_outside", "no target lies within the recording: targets " + range_text(targets.times) +
                                           ", samples " + range_text(recording.times)});
}

}  // namespace tmaops::recording
