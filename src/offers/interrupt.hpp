// Signals. A command that writes one file at its end leaves nothing behind; a command that measures keeps its results.
#pragma once

#include <csignal>

namespace tmaops::cli {

/// Handles SIGINT, SIGTERM and SIGHUP while it exists. A signal that was ignored before (nohup) stays ignored.
class SignalHandler {
 public:
  explicit SignalHandler(void (*handler)(int));
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3]{};
};

/// A signal removes unfinished output files and ends the process with exit code 130.
class DiscardOnInterrupt : SignalHandler {
 public:
  DiscardOnInterrupt();
};

/// The first signal is noted, so that the run ends soon and writes its results. A signal more than 0.3 s later ends the
/// process as above; `timeout -s INT` sends two at once.
class StopOnInterrupt : SignalHandler {
 public:
  StopOnInterrupt();
  static bool interrupted();
};

}  // namespace tmaops::cli
