#include <algorithm>

#include "core/fail.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {

Selection select_rows(const Recording& recording, const ResampleTargets& targets, const ResampledTable& table,
                      const Policies& policies) {
  Selection selection;
  for (std::size_t e = 0; e + 1 < targets.offsets.size(); ++e) {
    const auto first = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    for (std::int64_t t = targets.offsets[e]; t < targets.offsets[e + 1]; ++t) {
      const std::int64_t time = targets.sample_times[static_cast<std::size_t>(t)];
      const bool outside = first == end || time < *first || time > *(end - 1);
      const bool in_gap = !outside && table.valid[static_cast<std::size_t>(t)] == 0;
      selection.outside += outside;
      selection.in_gaps += in_gap;
      if (!(outside && policies.outside == "drop") && !(in_gap && policies.drop_gaps)) selection.kept.push_back(t);
    }
    selection.offsets.push_back(static_cast<std::int64_t>(selection.kept.size()));
  }
  return selection;
}

void check_something_left(const GivenTargets* given, const Recording& recording, const ResampleTargets& targets,
                          const ResampledTable& table, const Selection& selection, const Policies& policies) {
  if (policies.outside == "hold" || policies.outside == "extrapolate") return;
  const auto count = static_cast<std::int64_t>(targets.times.size());
  const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
  const auto [from, to] = std::minmax_element(targets.times.begin(), targets.times.end());
  if (selection.outside == count && count != 0)
    fail(ErrorCode::target_outside, recording.where,
         "all " + std::to_string(count) + " targets, from " + seconds_text(*from) + " to " + seconds_text(*to),
         "targets within the recording, from " + seconds_text(*first) + " to " + seconds_text(*last),
         "Check that both files count time from the same start. --time-unit names the unit of IN, " +
             (given == nullptr ? "--times-unit" : given->unit_option) + " that of FILE.");
  if (selection.outside + selection.in_gaps == count && count != 0) {
    if (table.masked == selection.in_gaps)
      fail(ErrorCode::bad_parameter, recording.where,
           "no target between samples that have data: the column 'valid' is 0 between all of them",
           "at least one target with data on both sides");
    fail(ErrorCode::bad_parameter, "--max-gap", "no target with samples near enough on both sides",
         "a limit above the usual step of the recording");
  }
}

void replace_rows(Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                  const ResampledTable& table, const Selection& selection, bool with_valid) {
  std::vector<Array> columns = output_columns(recording, plan, table, selection);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!recording.columns[c].group) continue;
    std::vector<std::int64_t> rows;  // a target without data has an episode too
    for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
      rows.insert(rows.end(), static_cast<std::size_t>(selection.offsets[e + 1] - selection.offsets[e]),
                  recording.offsets[e]);
    columns[c] = take_rows(recording.columns[c].data, rows, "column '" + recording.columns[c].name + "'");
  }
  for (std::size_t c = 0; c < columns.size(); ++c) recording.columns[c].data = std::move(columns[c]);
  recording.times.clear();
  recording.lines.clear();
  for (const std::int64_t t : selection.kept) {
    recording.times.push_back(targets.times[static_cast<std::size_t>(t)]);
    if (with_valid) recording.valid.push_back(table.valid[static_cast<std::size_t>(t)]);
  }
  recording.offsets = selection.offsets;
}

}  // namespace tmaops::recording
