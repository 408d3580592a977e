// Ctrl-C: the first one lets the run write what it has, the second one ends it.
#pragma once

namespace tmaops::cli {

/// Takes SIGINT and SIGTERM while it lives.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();
};

}  // namespace tmaops::cli
