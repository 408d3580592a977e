// Ctrl-C: a command that writes one file at its end leaves nothing behind; one that measures keeps what it has.
#pragma once

#include <csignal>

namespace tmaops::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP go to a handler. A signal that was ignored before (nohup) stays ignored.
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

/// The first signal is only noted: the run ends soon and writes what it has. One that comes more than 0.3 s later is as
/// above; `timeout -s INT` sends two at once.
class StopOnInterrupt : SignalHandler {
 public:
  StopOnInterrupt();
  static bool interrupted();
};

}  // namespace tmaops::cli
