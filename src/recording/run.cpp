#include "recording/run.hpp"

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops::recording {
namespace {

std::vector<Rules::Kind> kinds_of(const Recording& recording) {
  std::vector<Rules::Kind> kinds;
  for (const Column& column : recording.columns) kinds.push_back({column.name, column.data.type.kind, column.width()});
  return kinds;
}

/// Corrects a clock that is `seconds` behind.
void shift_times(Recording& recording, double seconds) {
  std::int64_t offset = 0;
  if (time_from_f64(seconds, TimeUnit::seconds, offset) != ParseResult::good)
    fail(ErrorCode::bad_parameter, "--offset", real_text(seconds), "seconds within 292 years");
  if (offset == 0) return;
  for (std::size_t row = 0; row < recording.times.size(); ++row)
    if (__builtin_add_overflow(recording.times[row], offset, &recording.times[row]))
      fail(ErrorCode::time_overflow, recording.place(static_cast<std::int64_t>(row)), "--offset " + real_text(seconds),
           "times within 292 years of 0, the range of int64 nanoseconds");
}

/// The angles of a plan that was made for other values: their turn stays, their range is that of these values.
void fit_angles(const Recording& recording, ModePlan& plan) {
  for (ModeGroup& group : plan.groups) {
    if (!group.angle) continue;
    const bool named = group.angle->unit_named;
    group.angle = find_angle_rule({recording.columns}, group.channels[0], recording.offsets, group.angle->turn);
    group.angle->unit_named = named;
  }
}

/// Warns of channels whose values jump by a turn, and which are linear since those of the plan did not.
void warn_of_late_angles(const Recording& recording, const ModePlan& plan, std::vector<Note>& warnings) {
  const ColumnView view{recording.columns};
  for (const ChannelReference& channel : plan.linear_by_default)
    if (const double turn = turn_by_value(view, channel, recording.offsets); turn != 0) {
      const std::string name = display_text(view.text(std::span(&channel, 1)));
      warnings.push_back({"angle_later", "'" + name + "' jumps by a turn and is linear by its rule: --mode '" + name +
                                             (turn == 360 ? "=angle:deg'" : "=angle:rad'") + " takes the shorter way"});
    }
}

std::string kinds_text(const std::vector<Rules::Kind>& kinds) {
  return joined(kinds, ", ", [](const Rules::Kind& kind) {
    return display_text(kind.name) + (kind.width == 1 ? "" : "[" + std::to_string(kind.width) + "]");
  });
}

}  // namespace

Rules decide(Recording& recording, const Options& options, const Policies& policies, const Rules* fixed,
             std::vector<Note>& warnings) {
  Rules rules;
  rules.input = prepare(recording, options, fixed == nullptr ? nullptr : &fixed->input.given);
  if (fixed != nullptr) {
    rules.columns = kinds_of(recording);
    if (rules.columns != fixed->columns)
      fail(ErrorCode::bad_parameter, recording.where, "the columns " + kinds_text(rules.columns),
           "those of the rules: " + kinds_text(fixed->columns));
    rules.plan = fixed->plan;
    fit_angles(recording, rules.plan);
    warn_of_late_angles(recording, rules.plan, warnings);
  } else {
    warn_of_recording(recording, warnings);
  }
  check_order(recording, policies.duplicates == Duplicates::last);
  if (fixed == nullptr) {
    rules.plan = plan_modes(recording, rules.input.roles, options);
    rules.plan.notes.insert(rules.plan.notes.begin(), recording.notes.begin(), recording.notes.end());
    rules.columns = kinds_of(recording);
    warnings.insert(warnings.end(), rules.plan.warnings.begin(), rules.plan.warnings.end());
  }
  return rules;
}

Run resample_recording(Recording& recording, const Options& options, const Defaults& defaults,
                       const GivenTargets* given, std::vector<Note>& warnings, const Rules* fixed) {
  Run run;
  run.policies = make_policies(options, defaults);
  const TargetWindow window = parse_window(options);
  shift_times(recording, options.offset);
  run.rules = decide(recording, options, run.policies, fixed, warnings);
  run.targets = make_targets(options, window, recording, given);
  run.steps = measure_steps(recording, run.policies.max_gap);
  run.rules.time = summarise_times(recording, run.steps);
  warn_of_targets(options, recording, given, run.targets, run.steps, window, warnings);
  run.table = resample_table(recording, run.targets, run.rules.plan, run.policies, run.rules.input.missing);
  if (fixed == nullptr) warn_of_aliasing(recording, run.targets, run.rules.plan, run.policies.duplicates, warnings);
  run.selection = select_rows(recording, run.targets, run.table, run.policies);
  move_events(recording, run.targets, run.rules.plan, run.policies, run.selection, run.table);
  check_something_left(given, recording, run.targets, run.table, run.selection, run.policies);
  run.with_valid = run.policies.max_gap != 0 || run.policies.outside_mode == Outside::nan || run.rules.input.has_mask;
  return run;
}

void check_strict(const Options& options, const std::vector<Note>& warnings) {
  if (const std::size_t count = warnings.size(); options.strict && count != 0)
    fail(ErrorCode::warnings_refused, "--strict", std::to_string(count) + (count == 1 ? " warning" : " warnings"),
         "none");
}

}  // namespace tmaops::recording
