// Running another process with a limit on its time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tmaops::probe {

struct Child {
  std::string printed;     // to stdout
  int exit_code = -1;      // 128 + signal when a signal ended it
  bool timed_out = false;  // killed after the limit
};

/// Runs a program to its end and drops its stderr. Throws Error cannot_read when it cannot be started.
Child run_child(const std::string& program, const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

}  // namespace tmaops::probe
