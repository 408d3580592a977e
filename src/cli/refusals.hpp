// What a run leaves out, told without repeating itself.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/run/report.hpp"

namespace tmaops::cli {

struct Globals;
class Progress;

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
