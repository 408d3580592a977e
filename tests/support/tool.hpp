// Running the program as a user does: arguments, environment, exit code, what it prints.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tmaops::test {

/// Of random cases that each start the program, so many where it starts quickly; under AddressSanitizer, where a start
/// takes ten times as long, a quarter of them.
constexpr int starts(int count) {
#ifdef __SANITIZE_ADDRESS__
  return count / 4;
#else
  return count;
#endif
}

struct ToolResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out{};
  std::string err{};
};

/// A running program. Its output goes to unnamed files, so it never waits for a reader.
class Tool {
 public:
  using Environment = std::map<std::string, std::string>;

  explicit Tool(const std::vector<std::string>& arguments, const Environment& environment = {},
                const std::string& program = TMAOPS_TOOL)
      : out_(std::tmpfile()), err_(std::tmpfile()) {
    pid_ = fork();
    if (pid_ != 0) return;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(fileno(out_), 1);
    dup2(fileno(err_), 2);
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  ~Tool() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::fclose(out_);
    std::fclose(err_);
  }
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  bool ended() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0;
  }
  ToolResult wait() {
    if (pid_ > 0) waitpid(std::exchange(pid_, -1), &status_, 0);
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), text_of(out_), text_of(err_)};
  }

 private:
  static std::string text_of(std::FILE* file) {
    std::string text(static_cast<std::size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
    [[maybe_unused]] const auto count = pread(fileno(file), text.data(), text.size(), 0);
    return text;
  }

  std::FILE* out_;
  std::FILE* err_;
  pid_t pid_ = -1;
  int status_ = 0;
};

inline ToolResult run_tool(const std::vector<std::string>& arguments, const Tool::Environment& environment = {}) {
  return Tool(arguments, environment).wait();
}

/// Expects that the text contains each piece.
template <class... Text>
void expect_text(const std::string& text, const Text&... pieces) {
  for (const std::string& piece : {std::string(pieces)...})
    EXPECT_NE(text.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << text;
}

}  // namespace tmaops::test
