#include "cli/interrupt.hpp"

#include <unistd.h>

#include <string_view>

#include "io/output_file.hpp"

namespace tmaops::cli {
namespace {

constexpr std::string_view kMessage = "tmaops: E092 interrupted: the unfinished output was removed\n";

// Only async-signal-safe calls.
extern "C" void discard_and_exit(int) {
  io::discard_partial_outputs();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(130);
}

}  // namespace

DiscardOnInterrupt::DiscardOnInterrupt() {
  struct sigaction action {};
  action.sa_handler = discard_and_exit;
  sigfillset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

DiscardOnInterrupt::~DiscardOnInterrupt() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace tmaops::cli
