#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/resample_files.hpp"
#include "core/display.hpp"
#include "core/spelling.hpp"

namespace tmaops::cli {
namespace {

// A step that is so many times the median step is mentioned when --max-gap is not given.
constexpr std::int64_t kRemarkableStep = 20;

}  // namespace

void write_report(const ResampleCommand& command, const RunFacts& facts, ResampleReport& report) {
  const Run& run = facts.run;
  const std::size_t targets = run.targets.times.size(), rows = run.selection.kept.size();
  const std::size_t episodes = run.selection.offsets.size() - 1;
  const std::string modes = joined(run.rules.plan.parts, ", ", [](const recording::ModePart& part) {
    return display_text(part.name) + " " + std::string(part.mode);
  });
  std::vector<std::string>& lines = report.lines;
  lines.push_back(fmt::format("{}: {} rows from {} samples, {} episode{}", display(command.output), rows,
                              run.rules.input.rows, episodes, episodes == 1 ? "" : "s"));
  lines.push_back("  time: " + run.rules.time.text());
  if (!facts.targets.empty()) lines.push_back("  targets: " + facts.targets);
  lines.push_back("  modes: " + modes);
  for (const auto& [names, order] : run.rules.plan.quaternions)
    lines.push_back("  quaternion: " + display_text(names) + " (" + order + ")");
  if (!facts.pose.empty()) lines.push_back("  " + facts.pose);
  for (const recording::Note& note : run.rules.plan.notes) lines.push_back("  " + note.text);
  if (run.rules.input.moved != 0) lines.push_back(fmt::format("  --sort moved {} rows", run.rules.input.moved));
  if (run.rules.input.missing.count != 0)
    lines.push_back(
        fmt::format("  {} of {} samples have no data (their 'valid' is 0); {} of {} targets lie beside them",
                    run.rules.input.missing.count, run.rules.input.rows, run.table.masked, targets));
  if (run.targets.snapped != 0)
    lines.push_back(fmt::format("  {} of {} targets hit a sample within --snap", run.targets.snapped, targets));
  if (!facts.left_out.empty())
    lines.push_back(fmt::format("  left out, since {} has no place for them: {}", io::to_string(facts.to),
                                joined(facts.left_out, ", ", display_text)));
  if (run.selection.outside != 0)
    lines.push_back(fmt::format("  {} of {} targets lie outside the recording: {}", run.selection.outside, targets,
                                run.policies.outside));
  const std::int64_t max_gap = run.policies.max_gap;
  if (max_gap != 0)
    lines.push_back(fmt::format("  {} of {} targets lie in {} gap{} wider than {}: {}",
                                run.selection.in_gaps - run.table.masked, targets, run.steps.wider_than_gap,
                                run.steps.wider_than_gap == 1 ? "" : "s", seconds_text(max_gap),
                                run.policies.drop_gaps ? "dropped" : "NaN, and 0 in the array 'valid'"));
  if (run.steps.zero != 0)
    lines.push_back(
        fmt::format("  {} pair{} of samples with equal timestamps: the later one wins (--duplicates error refuses)",
                    run.steps.zero, run.steps.zero == 1 ? "" : "s"));
  if (max_gap == 0 && run.steps.longest > kRemarkableStep * std::max<std::int64_t>(run.steps.median, 1))
    lines.push_back(fmt::format(
        "  the longest step is {}, the median one {}: --max-gap SECONDS keeps it from being interpolated across",
        seconds_text(run.steps.longest), seconds_text(run.steps.median)));

  auto json = nlohmann::ordered_json::parse(run.json(report.warnings));
  json["input"] = display(command.input);
  json["output"] = display(command.output);
  json["from"] = io::to_string(facts.from);
  json["to"] = io::to_string(facts.to);
  json["left_out"] = facts.left_out;
  json["bytes"] = facts.bytes;
  report.json = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tmaops::cli
