#include "commands/executor_check.hpp"

#include <CLI/CLI.hpp>

#include "core/fail.hpp"
#include "probe/faults.hpp"

#ifdef TMAOPS_EXECUTOR
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "commands/commands.hpp"
#include "commands/progress.hpp"
#include "commands/result_table.hpp"
#include "core/display.hpp"
#include "core/spelling.hpp"
#include "executor/findings.hpp"
#include "offers/console.hpp"
#include "offers/interrupt.hpp"
#include "offers/output_file.hpp"
#include "tmaops/version.hpp"
#endif

namespace tmaops::cli {

void add_executor_arguments(CLI::App& command, ExecutorArguments& arguments) {
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command.add_option(flag, value, help)->group("With --device executor");
  };
  add("--seeds", arguments.seeds, "Seeds to run with, from 1 on [1]")->check(CLI::Range(1, 1'000'000))->type_name("N");
  add("--schedule", arguments.schedule, "Who goes on where several threads or copies can [all]")
      ->check(CLI::IsMember({"all", "random", "eager", "lazy", "starving"}));
  command.add_flag("--strict", arguments.strict, "Also what the hardware forgives and PTX does not promise")
      ->group("With --device executor");
  command.add_flag("--global-races", arguments.global_races, "Also races in global memory")
      ->group("With --device executor");
  add("--findings", arguments.findings, "Write what is found to this file (JSON)")->type_name("FILE");
  add("--replay", arguments.replay, "Run one launch of a finding again, as its text says")
      ->type_name("SEED:SCHEDULE:LAUNCH");
}

#ifndef TMAOPS_EXECUTOR

bool has_executor() { return false; }

std::string fault_text(std::string_view fault) { return "outcome: " + probe::run_fault(fault) + "\n"; }

int verify_on_executor(const Globals&, const Arguments&, const ExecutorArguments&) {
  fail(ErrorCode::no_executor_build, "--device executor", {}, {});
}

#else
namespace {

using executor::Schedule;

std::optional<Schedule> schedule_of(std::string_view name) {
  for (const Schedule one : executor::kSchedules)
    if (to_string(one) == name) return one;
  return {};
}

/// The runs that the command asks for.
std::vector<executor::Options> runs_of(const ExecutorArguments& arguments) {
  executor::Options options{.strict = arguments.strict, .global_races = arguments.global_races};
  if (!arguments.replay.empty()) {
    std::vector<std::string> parts = split_list(arguments.replay, ':');
    if (parts.size() != 3) parts.assign(3, {});
    const auto seed = parse_integer(parts[0]);
    const auto schedule = schedule_of(parts[1]);
    const auto launch = parse_integer(parts[2]);
    if (!seed || !schedule || !launch || *seed < 1 || *launch < 1)
      fail(ErrorCode::usage, "--replay", "'" + display(arguments.replay) + "'",
           "the seed, the schedule and the number of the launch of a finding, for example 3:lazy:17");
    options.seed = static_cast<std::uint64_t>(*seed);
    options.schedule = *schedule;
    options.only_launch = static_cast<std::uint64_t>(*launch);
    return {options};
  }
  std::vector<executor::Options> runs;
  for (std::int64_t seed = 1; seed <= arguments.seeds; ++seed)
    for (const Schedule schedule : executor::kSchedules) {
      if (const auto wanted = schedule_of(arguments.schedule); wanted && *wanted != schedule) continue;
      options.seed = static_cast<std::uint64_t>(seed);
      options.schedule = schedule;
      runs.push_back(options);
    }
  return runs;
}

/// A row fails when it fails in one of the runs.
void add_to(bench::Report& all, bench::Report part) {
  const auto same = [](const bench::Row& a) {
    return [&a](const bench::Row& b) { return a.implementation == b.implementation && bench::same_case(a, b); };
  };
  for (bench::Row& row : part.failed) {
    std::erase_if(all.rows, same(row));
    if (std::ranges::none_of(all.failed, same(row))) all.failed.push_back(std::move(row));
  }
  all.status = part.status;
}

nlohmann::ordered_json findings_json(const std::vector<executor::Finding>& findings) {
  nlohmann::ordered_json json{{"schema", 1}, {"version", version()}, {"device", "executor (sm_90)"}};
  json["findings"] = nlohmann::ordered_json::array();
  for (const executor::Finding& one : findings)
    json["findings"].push_back({{"rule", to_string(one.rule)},
                                {"kernel", one.kernel},
                                {"thread", one.thread},
                                {"line", one.line},
                                {"text", one.text},
                                {"count", one.count},
                                {"strict", one.options.strict},
                                {"replay", replay_of(one)}});
  return json;
}

}  // namespace

bool has_executor() { return true; }

std::string fault_text(std::string_view fault) {
  std::string outcome;
  for (const Schedule schedule : executor::kSchedules) {
    executor::set_options({.schedule = schedule});
    try {
      outcome = probe::run_fault(fault);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kernel_breaks_rule) throw;
      outcome = "stopped by the executor";
    }
  }
  std::string text;
  for (const executor::Finding& one : executor::take_findings()) text += to_text(one) + "\n";
  return text + "outcome: " + outcome + "\n";
}

int verify_on_executor(const Globals& globals, const Arguments& arguments,
                       const ExecutorArguments& executor_arguments) {
  Request request = read_request(arguments);
  request.options.device = "executor";
  request.options.all_variants = true;
  request.options.time = false;
  bench::References references;
  request.options.references = &references;
  prepare_run(request.options);
  const std::vector<executor::Options> runs = runs_of(executor_arguments);

  Progress progress(globals);
  const StopOnInterrupt guard;
  Refusals refusals(globals, progress);
  bench::Observer observer = terminal_observer(progress, refusals);
  observer.refused = [&refusals](const bench::Refusal& refusal) {
    if (refusal.requested) refusals.tell(refusal);  // of all others somebody takes another problem
  };
  bench::Report report;
  const bool dependent_launch = request.options.dependent_launch;
  for (const executor::Options& run : runs) {
    executor::set_options(run);
    request.options.dependent_launch = dependent_launch && run.seed == 1;  // no seed changes what it may use
    observer.progress = [&](std::size_t done, std::size_t total, const std::string& what) {
      const auto before = static_cast<std::size_t>(&run - runs.data());
      progress.show(before * total + done, runs.size() * total, what + ", " + std::string(to_string(run.schedule)));
    };
    if (run.only_launch != 0)  // what comes behind it is not wanted
      observer.interrupted = [&run] {
        return StopOnInterrupt::interrupted() || executor::launches_so_far() >= run.only_launch;
      };
    bench::Report part = run_problems(request, observer);
    if (&run == runs.data())
      report = std::move(part);
    else
      add_to(report, std::move(part));
    if (run.only_launch != 0) report.status = bench::Status::complete;
    if (report.status == bench::Status::partial) break;
    observer.refused = nullptr;  // known from the first run
  }
  refusals.finish();
  const std::vector<executor::Finding> findings = executor::take_findings();
  if (!executor_arguments.findings.empty())
    io::write_file(executor_arguments.findings, bench::to_text(findings_json(findings)), {.force = true});

  if (globals.json)
    print_data(bench::to_text(bench::to_json(report, config_json(request, arguments.config))));
  else
    print_data(verify_table(report, use_color(globals, Stream::data), line_width(Stream::data)));
  for (const executor::Finding& one : findings) print_styled(to_text(one) + ": --replay " + replay_of(one) + "\n");
  if (findings.empty())  // a kernel that breaks a rule has said so
    for (const bench::Row& row : report.failed) print_problem(failure_text(row, request.options.seed));
  print_note(globals, std::to_string(runs.size()) + " runs of every kernel (seeds x schedules), " +
                          std::to_string(findings.size()) + " findings");
  return findings.empty() ? report.exit_code() : 1;
}

#endif

}  // namespace tmaops::cli
