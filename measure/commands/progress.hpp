// What a run shows on stderr while it goes on: a progress bar, and what it leaves out.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/run/report.hpp"

namespace tmaops::cli {

struct Globals;

/// A progress bar: only on a terminal, never with --quiet.
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

/// A line for everything that is left out, with two exceptions: a peer's reason is told once, not for every case; and
/// variants that nobody named and that run on a GPU share one line at the end.
class Refusals {
 public:
  Refusals(const Globals& globals, Progress& progress) : globals_(globals), progress_(progress) {}
  void tell(const bench::Refusal& refusal);
  /// The line about the variants that run on a GPU.
  void finish();

 private:
  const Globals& globals_;
  Progress& progress_;
  std::set<std::string> reasons_of_peers_{};
  std::map<std::string, std::vector<std::string>> on_gpu_{};  // variants of an operator
};

}  // namespace tmaops::cli
