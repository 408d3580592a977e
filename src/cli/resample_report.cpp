#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/resample_steps.hpp"
#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/spelling.hpp"
#include "io/decimal.hpp"

namespace tmaops::cli {
namespace {

// A step that is so many times the median step is mentioned when --max-gap is not given.
constexpr std::int64_t kRemarkableStep = 20;

std::string choice_text(const io::TimeColumn& time, std::string_view option) {
  if (time.choice == io::TimeChoice::option) return "named by " + std::string(option);
  return time.choice == io::TimeChoice::position ? "the first column, since no name is known" : "";
}

std::string unit_text(const io::TimeColumn& time, std::string_view option) {
  if (time.unit_source == io::UnitSource::option) return "unit by " + std::string(option);
  constexpr std::string_view texts[] = {"unit by the format", "", "unit by the name",
                                        "no other unit fits timestamps of this size", "unit assumed"};
  return std::string(enum_name(texts, time.unit_source));
}

}  // namespace

Steps measure_steps(const io::Recording& recording, std::int64_t max_gap) {
  std::vector<std::int64_t> all;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      std::int64_t step = 0;
      if (__builtin_sub_overflow(recording.times[static_cast<std::size_t>(row)],
                                 recording.times[static_cast<std::size_t>(row - 1)], &step))
        continue;  // the operator has an error for it
      all.push_back(step);
    }
  if (all.empty()) return {};
  Steps steps;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  steps.median = *middle;
  steps.longest = *std::max_element(all.begin(), all.end());
  steps.wider_than_gap = max_gap == 0 ? 0 : std::count_if(all.begin(), all.end(), [&](auto s) { return s > max_gap; });
  steps.zero = std::count(all.begin(), all.end(), 0);
  return steps;
}

TimeSummary summarise_times(const io::Recording& recording, const Steps& steps) {
  TimeSummary summary{recording.time, recording.format};
  if (!recording.times.empty()) {
    const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
    summary.first = *first;
    summary.last = *last;
  }
  summary.median_step = steps.median;
  return summary;
}

std::string TimeSummary::text(std::string_view name_option, std::string_view unit_option) const {
  const std::string_view kind = format == io::FileFormat::npz ? "array" : "column";
  std::string name = fmt::format("{} '{}'", kind, display_text(column.name));
  if (column.form == io::TimeForm::pair)
    name = fmt::format("{}s '{}' and '{}'", kind, display_text(column.name), display_text(column.second_name));
  std::string unit = " in " + std::string(io::to_string(column.unit));
  if (column.form == io::TimeForm::pair) unit = " in s and ns";
  if (column.form == io::TimeForm::iso8601) unit = " in ISO 8601";
  if (column.form == io::TimeForm::datetime64) unit = " of datetime64";
  const int digits = io::digits_needed({first, last}, io::TimeUnit::seconds);
  std::string text = name + unit + ", " + io::time_text(first, io::TimeUnit::seconds, digits) + " to " +
                     io::time_text(last, io::TimeUnit::seconds, digits) + " s";
  if (median_step > 0) text += fmt::format(", {:.4g} Hz median", 1e9 / static_cast<double>(median_step));
  std::string how = choice_text(column, name_option);
  if (column.form == io::TimeForm::number) how += (how.empty() ? "" : "; ") + unit_text(column, unit_option);
  return how.empty() ? text : text + " (" + how + ")";
}

void write_report(const ResampleCommand& command, const RunFacts& facts, ResampleReport& report) {
  const std::size_t targets = facts.targets.times.size(), rows = facts.selection.kept.size();
  const std::size_t episodes = facts.selection.offsets.size() - 1;
  const std::string modes =
      joined(facts.plan.summary, ", ", [](const auto& part) { return display_text(part.first) + " " + part.second; });
  std::vector<std::string>& lines = report.lines;
  lines.push_back(fmt::format("{}: {} rows from {} samples, {} episode{}", display(command.output), rows,
                              facts.input.rows, episodes, episodes == 1 ? "" : "s"));
  lines.push_back("  time: " + facts.time.text());
  if (!facts.targets.file.empty()) lines.push_back("  targets: " + facts.targets.file);
  lines.push_back("  modes: " + modes);
  for (const auto& [names, order] : facts.plan.quaternions)
    lines.push_back("  quaternion: " + display_text(names) + " (" + order + ")");
  if (!facts.pose.empty()) lines.push_back("  " + facts.pose);
  for (const std::string& note : facts.plan.notes) lines.push_back("  " + note);
  if (facts.input.moved != 0) lines.push_back(fmt::format("  --sort moved {} rows", facts.input.moved));
  if (facts.input.missing.count != 0)
    lines.push_back(
        fmt::format("  {} of {} samples have no data (their 'valid' is 0); {} of {} targets lie beside them",
                    facts.input.missing.count, facts.input.rows, facts.table.masked, targets));
  if (facts.targets.snapped != 0)
    lines.push_back(fmt::format("  {} of {} targets hit a sample within --snap", facts.targets.snapped, targets));
  if (!facts.left_out.empty())
    lines.push_back(fmt::format("  left out, since {} has no place for them: {}", io::to_string(facts.to),
                                joined(facts.left_out, ", ", display_text)));
  if (facts.selection.outside != 0)
    lines.push_back(fmt::format("  {} of {} targets lie outside the recording: {}", facts.selection.outside, targets,
                                facts.policies.outside));
  const std::int64_t max_gap = facts.policies.max_gap;
  if (max_gap != 0)
    lines.push_back(fmt::format("  {} of {} targets lie in {} gap{} wider than {}: {}",
                                facts.selection.in_gaps - facts.table.masked, targets, facts.steps.wider_than_gap,
                                facts.steps.wider_than_gap == 1 ? "" : "s", seconds_text(max_gap),
                                facts.policies.drop_gaps ? "dropped" : "NaN, and 0 in the array 'valid'"));
  if (facts.steps.zero != 0)
    lines.push_back(
        fmt::format("  {} pair{} of samples with equal timestamps: the later one wins (--duplicates error refuses)",
                    facts.steps.zero, facts.steps.zero == 1 ? "" : "s"));
  if (max_gap == 0 && facts.steps.longest > kRemarkableStep * std::max<std::int64_t>(facts.steps.median, 1))
    lines.push_back(fmt::format(
        "  the longest step is {}, the median one {}: --max-gap SECONDS keeps it from being interpolated across",
        seconds_text(facts.steps.longest), seconds_text(facts.steps.median)));

  nlohmann::ordered_json columns = nlohmann::ordered_json::array(), quaternions = columns;
  for (const auto& [name, mode] : facts.plan.summary) columns.push_back({{"name", name}, {"mode", mode}});
  for (const auto& [names, order] : facts.plan.quaternions)
    quaternions.push_back({{"columns", names}, {"order", order}});
  const io::TimeColumn& time = facts.time.column;
  const nlohmann::ordered_json summary{
      {"schema", 1},
      {"input", display(command.input)},
      {"output", display(command.output)},
      {"from", io::to_string(facts.from)},
      {"to", io::to_string(facts.to)},
      {"samples", facts.input.rows},
      {"episodes", episodes},
      {"targets", targets},
      {"rows", rows},
      {"time",
       {{"name", time.name},
        {"unit", io::to_string(time.unit)},
        {"chosen_by", io::to_string(time.choice)},
        {"unit_by", io::to_string(time.unit_source)},
        {"first_ns", facts.time.first},
        {"last_ns", facts.time.last},
        {"median_step_ns", facts.time.median_step}}},
      {"outside", {{"policy", facts.policies.outside}, {"targets", facts.selection.outside}}},
      {"gaps",
       {{"max_gap_ns", max_gap},
        {"count", facts.steps.wider_than_gap},
        {"targets", facts.selection.in_gaps - facts.table.masked}}},
      {"missing", {{"samples", facts.input.missing.count}, {"targets", facts.table.masked}}},
      {"snapped", facts.targets.snapped},
      {"longest_step_ns", facts.steps.longest},
      {"equal_stamps", facts.steps.zero},
      {"columns", columns},
      {"quaternions", quaternions},
      {"left_out", facts.left_out},
      {"notes", facts.plan.notes},
      {"warnings", report.warnings},
      {"variant", facts.table.variant},
      {"bytes", facts.bytes}};
  // Names of columns are bytes of a file: what is not UTF-8 must not break the JSON.
  report.json = summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tmaops::cli
