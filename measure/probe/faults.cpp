#include "probe/faults.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/fail.hpp"

extern char** environ;

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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(beginning)) return std::string(line.substr(beginning.size()));
    at = end + 1;
  }
  return {};
}

[[noreturn]] void cannot_start(const std::string& program, int error_number) {
  fail(ErrorCode::cannot_read, "starting " + program, std::strerror(error_number), "a program that starts");
}

/// Reads until the output or the time ends. Returns whether the output ended.
bool read_all(int from, std::chrono::steady_clock::time_point until, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 20)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::span<const Fault> faults() { return kFaults; }

bool is_expected(const Fault& fault, std::string_view outcome) {
  std::string_view rest = fault.expected;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (outcome.starts_with(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
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
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(program, errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int started = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (started != 0) {
    close(ends[0]);
    cannot_start(program, started);
  }
  Child child;
  child.timed_out = !read_all(ends[0], std::chrono::steady_clock::now() + limit, child.printed);
  close(ends[0]);
  if (child.timed_out) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return child;
}

}  // namespace tmaops::probe
