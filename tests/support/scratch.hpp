// A folder of its own for a test, and what a file test needs to look at it.
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tmaops::test {

/// A new empty folder, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tmaops-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  /// A file with this content; its path.
  std::filesystem::path file(const std::filesystem::path& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  /// Names of everything in the folder.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) all.insert(entry.path().filename());
    return all;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_all(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

/// Runs fn in a forked child; its exit status (fn's return value), or 128 + the signal that ended it.
template <class Fn>
int in_child(const Fn& fn) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = fn();
    } catch (const std::exception& error) {
      const std::string_view text = error.what();
      [[maybe_unused]] const auto written = ::write(2, text.data(), text.size());
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Becomes another user, in a forked child only: permissions mean nothing to root. That user cannot start a program
/// that lies in a folder of root's own.
inline void become_nobody() {
  if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(98);
}

/// Gives up root's right to pass over permissions, in a forked child only, and for every program started from it. It
/// stays the same user, who can still start a program in a folder of his own.
inline void obey_permissions() {
  if (geteuid() != 0) return;
  constexpr unsigned kOverride = 1U << CAP_DAC_OVERRIDE;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) != 0 || syscall(SYS_capget, &header, sets) != 0) _exit(98);
  for (unsigned* one : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable}) *one &= ~kOverride;
  if (syscall(SYS_capset, &header, sets) != 0) _exit(98);
}

}  // namespace tmaops::test
