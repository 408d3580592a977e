// A progress bar on stderr: only on a terminal, never with --quiet.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tmaops::cli {

struct Globals;

class Progress {
 public:
  explicit Progress(const Globals& globals);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done, std::size_t total, const std::string& what);
  /// Removes the bar, for example before another line is printed.
  void clear();

 private:
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace tmaops::cli
