// Warnings about a resampling, found before anything is written.
#include <algorithm>
#include <cmath>

#include "cli/resample_steps.hpp"
#include "core/display.hpp"
#include "io/decimal.hpp"

namespace tmaops::cli {
namespace {

// A wrong unit of time is wrong by a factor of 1,000 or more. Every usual rate lies between these bounds.
constexpr double kMostPerSample = 100;
constexpr double kFewestPerSample = 0.01;
// f32 times whose resolution is coarser than this part of a step move the values.
constexpr double kResolvedStep = 1e-3;

std::string counted(double value) { return io::real_text(std::round(value * 1e4) / 1e4); }

std::string range_text(const std::vector<std::int64_t>& times) {
  const auto [least, greatest] = std::minmax_element(times.begin(), times.end());
  return seconds_text(*least) + " to " + seconds_text(*greatest);
}

}  // namespace

void warn_of_recording(const io::Recording& recording, std::vector<std::string>& warnings) {
  warnings.insert(warnings.end(), recording.warnings.begin(), recording.warnings.end());
  for (const std::string& name : recording.other_time_names)
    warnings.push_back("'" + display_text(name) + "' is named like a time too; the times are '" +
                       display_text(recording.time.name) + "' (--times-array names another)");
  for (const io::Column& column : recording.columns) {
    const std::string name = "column '" + display_text(column.name) + "' ";
    const std::int64_t filled = column.data.size() - column.missing;
    if (column.data.type.kind == io::ElementKind::text && column.from_text && 2 * column.numeric_fields > filled &&
        column.numeric_fields > 0)
      warnings.push_back(name + "is text, though " + std::to_string(column.numeric_fields) + " of " +
                         std::to_string(column.data.size()) + " fields are numbers" +
                         (column.first_other.empty() ? "" : "; the first other one is " + column.first_other));
    if (column.data.size() > 0 && 2 * column.missing > column.data.size())
      warnings.push_back(name + "is mostly missing: " + std::to_string(column.missing) + " of " +
                         std::to_string(column.data.size()) + " values");
  }
}

void warn_of_targets(const ResampleCommand& command, const io::Recording& recording, const ResampleTargets& targets,
                     const Steps& steps, const TargetWindow& window, std::vector<std::string>& warnings) {
  warnings.insert(warnings.end(), targets.warnings.begin(), targets.warnings.end());
  const auto rows = static_cast<double>(recording.rows()), count = static_cast<double>(targets.times.size());
  const bool cut = !command.start.empty() || !command.end.empty();
  if (command.hz && ((!cut && rows >= 2 && count < kFewestPerSample * rows) || count > kMostPerSample * rows))
    warnings.push_back(
        counted(count / rows) + " targets per sample: is the unit of the times right? The samples span " +
        seconds_text(recording.times.back() - recording.times.front()) + " (--time-unit names another unit)");
  if (recording.time.coarse) {
    const io::TimeUnit unit = recording.time.unit;
    const double largest = std::max(std::abs(io::time_to_f64(recording.times.front(), unit)),
                                    std::abs(io::time_to_f64(recording.times.back(), unit)));
    const auto nanoseconds = static_cast<double>(io::nanoseconds_of(unit));
    const double resolution = largest == 0 ? 0 : std::ldexp(nanoseconds, std::ilogb(largest) - 23);
    if (resolution > kResolvedStep * static_cast<double>(steps.median))
      warnings.push_back("the times are of a type of 32 bits or less, which resolves " +
                         seconds_text(static_cast<std::int64_t>(resolution)) + " at " + range_text(recording.times) +
                         ": write them as f64 seconds or int64 nanoseconds");
  }
  if (window.snap != 0 && steps.median != 0 && window.snap > steps.median / 2)
    warnings.push_back("--snap " + seconds_text(window.snap) + " is more than half of the median step, " +
                       seconds_text(steps.median) + ": targets between samples lose their interpolation");
  if (command.hz || targets.times.empty()) return;
  const auto [first, last] = std::minmax_element(targets.times.begin(), targets.times.end());
  const auto [from, to] = std::minmax_element(recording.times.begin(), recording.times.end());
  if (*last < *from || *first > *to)
    warnings.push_back("no target lies within the recording: targets " + range_text(targets.times) + ", samples " +
                       range_text(recording.times));
}

}  // namespace tmaops::cli
