#include "offers/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "offers/output_file.hpp"

namespace tmaops::cli {
namespace {

constexpr std::string_view kMessage = "tmaops: E092 interrupted: the unfinished output was removed\n";
/// Signals this close together count as one: `timeout` and some terminals signal the process and then its group.
constexpr std::int64_t kSamePressNs = 300'000'000;
std::atomic<std::int64_t> noted_ns{0};  // when the first signal came; 0 before
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// Uses only async-signal-safe calls.
extern "C" void discard_and_exit(int) {
  io::discard_partial_outputs();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(130);
}

extern "C" void note_first(int signal) {
  if (noted_ns == 0)
    noted_ns = now_ns();
  else if (now_ns() - noted_ns > kSamePressNs)
    discard_and_exit(signal);
}

}  // namespace

SignalHandler::SignalHandler(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

SignalHandler::~SignalHandler() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

DiscardOnInterrupt::DiscardOnInterrupt() : SignalHandler(discard_and_exit) {}

StopOnInterrupt::StopOnInterrupt() : SignalHandler(note_first) { noted_ns = 0; }

bool StopOnInterrupt::interrupted() { return noted_ns != 0; }

}  // namespace tmaops::cli
