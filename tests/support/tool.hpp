// Running the built program `tmaops` as a user does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace tmaops::test {

struct ToolResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out{};
  std::string err{};
};

/// How the program is run. An environment value "" unsets the variable.
struct ToolOptions {
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string directory{};  // to run in
  /// Called again and again with what is on stderr so far; the program gets SIGINT once it says true.
  std::function<bool(const std::string&)> interrupt_when{};
  bool close_stdout = false;  // the reader of stdout goes away at once
};

inline ToolResult run_tool(const std::vector<std::string>& arguments, const ToolOptions& options = {}) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  std::vector<std::string> words{TMAOPS_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool replaced =
        std::ranges::any_of(options.environment, [&](const auto& one) { return text.starts_with(one.first + "="); });
    if (!replaced) variables.push_back(text);
  }
  for (const auto& [name, value] : options.environment)
    if (!value.empty()) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  if (!options.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());
  pid_t child = -1;
  const int status =
      posix_spawn(&child, TMAOPS_TOOL, &actions, nullptr, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  ToolResult result;
  if (status != 0) {
    ADD_FAILURE() << "cannot start " << TMAOPS_TOOL;
    return result;
  }
  if (options.close_stdout) close(out[0]);

  bool interrupted = false;
  bool out_open = !options.close_stdout;
  bool err_open = true;
  const auto read_some = [](int file, std::string& to) {
    char bytes[4096];
    const ssize_t count = read(file, bytes, sizeof bytes);
    if (count > 0) to.append(bytes, static_cast<std::size_t>(count));
    return count > 0;
  };
  while (out_open || err_open) {
    pollfd waiting[2] = {{out_open ? out[0] : -1, POLLIN, 0}, {err_open ? err[0] : -1, POLLIN, 0}};
    poll(waiting, 2, 20);
    if (out_open && waiting[0].revents != 0) out_open = read_some(out[0], result.out);
    if (err_open && waiting[1].revents != 0) err_open = read_some(err[0], result.err);
    if (!interrupted && options.interrupt_when && options.interrupt_when(result.err)) {
      kill(child, SIGINT);
      interrupted = true;
    }
  }
  if (!options.close_stdout) close(out[0]);
  close(err[0]);
  int ended = 0;
  waitpid(child, &ended, 0);
  result.exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  return result;
}

/// Expects that the text contains each piece.
template <class... Text>
void expect_text(const std::string& text, const Text&... pieces) {
  for (const std::string& piece : {std::string(pieces)...})
    EXPECT_NE(text.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << text;
}

}  // namespace tmaops::test
