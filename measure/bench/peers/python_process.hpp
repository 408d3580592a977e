// A child process that answers one JSON line to each JSON line.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tmaops::bench {

class LineProcess {
 public:
  /// Starts arguments[0] (looked up in PATH) with these changes of the environment; an empty value unsets a variable.
  /// Throws Error cannot_read when it cannot be started.
  LineProcess(const std::vector<std::string>& arguments,
              const std::vector<std::pair<std::string, std::string>>& environment, std::function<bool()> interrupted);
  /// Closes the pipes, gives the process a second to end, then ends it.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  /// Sends a line and waits for the answer. Throws Error variant_refuses when the process ended, answers with something
  /// else than JSON or not within `timeout` seconds, or with {"refuse": reason}; Error interrupted when the run is.
  nlohmann::json ask(const nlohmann::json& question, double timeout);

 private:
  std::string read_line(double timeout);

  pid_t child_ = -1;
  int socket_ = -1;
  std::string buffer_;
  std::function<bool()> interrupted_;
};

}  // namespace tmaops::bench
