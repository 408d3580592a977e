#include "bench/peers/python_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "bench/peers/peers.hpp"
#include "core/fail.hpp"

extern char** environ;

namespace tmaops::bench {
namespace {

constexpr const char* kPythonPeers = "Python peers";

std::vector<std::string> changed_environment(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::none_of(changes, [&](const auto& change) { return change.first == name; }))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& arguments,
                         const std::vector<std::pair<std::string, std::string>>& environment,
                         std::function<bool()> interrupted)
    : interrupted_(std::move(interrupted)) {
  int ends[2];
  // A socket and not a pipe: writing to a process that ended is an error here and not a signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail(ErrorCode::internal, "socketpair", std::to_string(errno), {});
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C reaches only us, and the process ends when its input does.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables = changed_environment(environment);
  const int status = posix_spawnp(&child_, words.front().c_str(), &actions, &attributes, pointers(words).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (status == 0) return;
  close(socket_);
  fail(ErrorCode::cannot_read, arguments.front(),
       status == ENOENT ? "no such program" : "error " + std::to_string(status), "");
}

LineProcess::~LineProcess() {
  close(socket_);
  for (int nap = 0; nap < 100; ++nap) {
    if (waitpid(child_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

std::string LineProcess::read_line(double timeout) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  for (;;) {
    if (const std::size_t newline = buffer_.find('\n'); newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return line;
    }
    if (interrupted_ && interrupted_()) fail(ErrorCode::interrupted, kPythonPeers, {}, {});
    if (std::chrono::steady_clock::now() > end)
      peer_refuses(kPythonPeers, "an answer within " + std::to_string(static_cast<int>(timeout)) + " s");
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, 50) <= 0) continue;
    char bytes[4096];
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) peer_refuses(kPythonPeers, "a process that lives: it ended (its own message is above)");
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
}

nlohmann::json LineProcess::ask(const nlohmann::json& question, double timeout) {
  const std::string line = question.dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) peer_refuses(kPythonPeers, "a process that lives: it ended (its own message is above)");
    sent += static_cast<std::size_t>(count);
  }
  const std::string text = read_line(timeout);
  const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object()) peer_refuses(kPythonPeers, "a JSON object as answer, got '" + text.substr(0, 200) + "'");
  if (answer.contains("refuse"))
    peer_refuses(kPythonPeers, answer["refuse"].is_string() ? answer["refuse"].get<std::string>() : "a reason");
  return answer;
}

}  // namespace tmaops::bench
