#include "executor/findings.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "core/fail.hpp"
#include "executor/rules.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

[[noreturn]] void refuse(const char* variable, const char* got, const char* needed) {
  std::fprintf(stderr, "%s: got '%s', needed %s\n", variable, got, needed);
  std::exit(2);
}

Options options_of_environment() {
  Options options;
  if (const char* schedule = std::getenv("TMAOPS_EXECUTOR_SCHEDULE")) {
    bool known = false;
    for (const Schedule each : kSchedules)
      if (to_string(each) == schedule) {
        options.schedule = each;
        known = true;
      }
    if (!known) refuse("TMAOPS_EXECUTOR_SCHEDULE", schedule, "random, eager, lazy or starving");
  }
  if (const char* seed = std::getenv("TMAOPS_EXECUTOR_SEED")) {
    char* end = nullptr;
    options.seed = std::strtoull(seed, &end, 10);
    if (*seed < '0' || *seed > '9' || *end != '\0') refuse("TMAOPS_EXECUTOR_SEED", seed, "a whole number");
  }
  return options;
}

Options current_options = options_of_environment();
std::vector<Finding> findings;
std::map<std::tuple<Rule, std::string, std::string>, std::size_t> known_findings;
std::uint64_t times_reported = 0;
std::uint64_t launches = 0;  // with these options
Schedule schedule_now = Schedule::random;

}  // namespace

std::string_view to_string(Rule rule) { return kRules[static_cast<std::size_t>(rule)].id; }

std::string_view to_string(Schedule schedule) {
  switch (schedule) {
    case Schedule::random:
      return "random";
    case Schedule::eager:
      return "eager";
    case Schedule::lazy:
      return "lazy";
    case Schedule::starving:
      return "starving";
  }
  return "?";
}

void set_options(const Options& options) {
  current_options = options;
  launches = 0;
}
std::uint64_t launches_so_far() { return launches; }
std::uint64_t seed_of_next_launch() {
  ++launches;
  schedule_now = current_options.only_launch == 0 || current_options.only_launch == launches ? current_options.schedule
                                                                                             : Schedule::eager;
  return current_options.seed * 0x2545F4914F6CDD1Dull + launches;
}
const Options& options() { return current_options; }
Schedule schedule() { return schedule_now; }

std::string to_text(const Finding& finding) {
  std::string text = std::string(to_string(finding.rule)) + ": " + finding.text;
  text += "\n  in " + finding.kernel;
  if (!finding.thread.empty()) text += ", " + finding.thread;
  text += "\n  at " + finding.line;
  text += "\n  with seed " + std::to_string(finding.options.seed) + ", schedule " +
          std::string(to_string(finding.options.schedule)) + ", launch " + std::to_string(finding.launch);
  if (finding.count > 1) text += "; met " + std::to_string(finding.count) + " times";
  return text;
}

std::string replay_of(const Finding& finding) {
  return std::to_string(finding.options.seed) + ":" + std::string(to_string(finding.options.schedule)) + ":" +
         std::to_string(finding.launch);
}

std::vector<Finding> take_findings() {
  known_findings.clear();
  return std::exchange(findings, {});
}

std::string name_of(const Thread& thread) {
  const Extent& at = thread.block->position;
  return "thread " + std::to_string(thread.index) + " of block (" + std::to_string(at.x) + ", " + std::to_string(at.y) +
         ", " + std::to_string(at.z) + ")";
}

std::string name_of(Agent agent) {
  if (agent >= launch->threads.size()) return "an asynchronous copy or product";
  const Thread& thread = *launch->threads[agent];
  return launch->cluster > 1 ? name_of(thread) : "thread " + std::to_string(thread.index);
}

void report(Rule rule, const std::string& text, const void* place) {
  ++times_reported;
  const std::string line = source_line(place);
  const auto [found, is_new] = known_findings.try_emplace({rule, launch->where, line}, findings.size());
  if (!is_new) {
    ++findings[found->second].count;
    return;
  }
  findings.push_back({.rule = rule,
                      .kernel = launch->where,
                      .thread = self != nullptr ? name_of(*self) : "",
                      .text = text,
                      .line = line,
                      .count = 1,
                      .options = current_options,
                      .launch = launches});
  if (std::getenv("TMAOPS_EXECUTOR_BREAK") != nullptr) {
    std::fprintf(stderr, "%s\n", to_text(findings.back()).c_str());
    std::raise(SIGTRAP);  // a debugger stops here
  }
}

void stop(Rule rule, const std::string& text, const void* place) {
  report(rule, text, place);
  launch->stopped = true;
  throw Stop{};
}

std::uint64_t findings_so_far() { return times_reported; }

std::string findings_since(std::uint64_t before) {
  if (times_reported == before || findings.empty()) return {};
  const Finding& last = findings.back();
  return std::string(to_string(last.rule)) + " at " + last.line + ": " + last.text;
}

}  // namespace tmaops::executor
