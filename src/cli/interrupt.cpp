#include "cli/interrupt.hpp"

#include <unistd.h>

#include <csignal>

#include "io/output_file.hpp"

namespace tmaops::cli {
namespace {

constexpr int kExitInterrupted = 130;
volatile std::sig_atomic_t signals = 0;

extern "C" void on_signal(int) {
  if (signals > 0) {
    io::discard_partial_outputs();
    _exit(kExitInterrupted);
  }
  signals = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  signals = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted() { return signals > 0; }

}  // namespace tmaops::cli
