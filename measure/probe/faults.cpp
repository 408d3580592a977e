#include "probe/faults.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops::probe {
namespace {

constexpr Fault kFaults[] = {
#define TMAOPS_FAULT(name, expected, text) {#name, expected, text},
#include "probe/faults.def"
#undef TMAOPS_FAULT
};

constexpr std::string_view kOutcome = "outcome: ";
constexpr std::string_view kWatchdog = "tmaops: wait for ";

/// The rest of the first line that starts with `beginning`; empty when there is none.
std::string line_after(std::string_view text, std::string_view beginning) {
  for (const std::string& line : split_list(text, '\n'))
    if (line.starts_with(beginning)) return line.substr(beginning.size());
  return {};
}

/// A word of a shell's command line.
std::string quoted(std::string word) {
  for (std::size_t at = 0; (at = word.find('\'', at)) != std::string::npos; at += 4) word.replace(at, 1, "'\\''");
  return "'" + word + "'";
}

}  // namespace

std::span<const Fault> faults() { return kFaults; }

bool is_expected(const Fault& fault, std::string_view outcome) {
  return std::ranges::any_of(split_list(fault.expected, '|'),
                             [&](const std::string& one) { return outcome.starts_with(one); });
}

std::string outcome_of(std::string_view printed, int exit_code, bool timed_out) {
  if (const std::string line = line_after(printed, kWatchdog); !line.empty()) {
    // Leaves out the block and the thread, which differ from run to run.
    return "watchdog: wait for " + line.substr(0, line.find(": block"));
  }
  if (timed_out) return "killed: no end, and no word from the watchdog";
  if (std::string line = line_after(printed, kOutcome); !line.empty()) return line;
  return "failed: exit code " + std::to_string(exit_code);
}

std::vector<FaultRun> run_faults(const std::string& program, std::chrono::milliseconds limit,
                                 const Observer& observer) {
  std::vector<FaultRun> runs;
  for (const Fault& fault : faults()) {
    if (observer.stop()) break;
    observer.progress(runs.size(), faults().size(), "fault " + std::string(fault.name));
    const Child child = run_child(program, {"probe-fault", std::string(fault.name)}, limit);
    FaultRun run{.fault = &fault, .outcome = outcome_of(child.printed, child.exit_code, child.timed_out)};
    run.expected = is_expected(fault, run.outcome);
    runs.push_back(std::move(run));
  }
  return runs;
}

Child run_child(const std::string& program, const std::vector<std::string>& arguments,
                std::chrono::milliseconds limit) {
  if (access(program.c_str(), X_OK) != 0)
    fail(ErrorCode::cannot_read, "starting " + program, std::strerror(errno), "a program that starts");
  std::string command = "exec timeout -s KILL " + std::to_string(static_cast<double>(limit.count()) / 1000);
  command += " " + quoted(program);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  const auto begin = std::chrono::steady_clock::now();
  std::FILE* output = popen((command + " </dev/null 2>/dev/null").c_str(), "re");
  if (output == nullptr)
    fail(ErrorCode::cannot_read, "starting " + program, std::strerror(errno), "a process that starts");
  Child child;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), output))
    child.printed.append(buffer.data(), count);
  const int status = pclose(output);
  child.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  child.timed_out = child.exit_code == 128 + SIGKILL && std::chrono::steady_clock::now() - begin >= limit;
  return child;
}

}  // namespace tmaops::probe
