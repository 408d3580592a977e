// Ctrl-C during a command that writes one file at its end.
#pragma once

#include <csignal>

namespace tmaops::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP remove unfinished output files and end the process with exit code 130.
/// A signal that was ignored before (nohup) stays ignored.
class DiscardOnInterrupt {
 public:
  DiscardOnInterrupt();
  ~DiscardOnInterrupt();
  DiscardOnInterrupt(const DiscardOnInterrupt&) = delete;
  DiscardOnInterrupt& operator=(const DiscardOnInterrupt&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3]{};
};

}  // namespace tmaops::cli
