// Tells the observer of a run what happens, and collects the report.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "bench/run/report.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// Hears what happens during a run. Every function may be left out.
struct Observer {
  std::function<void(std::size_t done, std::size_t total, const std::string& what)> progress{};
  std::function<void(const Row&)> row{};
  std::function<void(const Refusal&)> refused{};
  std::function<void(const std::string&)> note{};
  std::function<bool()> interrupted{};
};

class Recorder {
 public:
  explicit Recorder(const Observer& observer) : observer_(observer) {}

  bool interrupted() const { return observer_.interrupted && observer_.interrupted(); }
  void note(const std::string& text) const;

  /// Length of the run: the number of problems, each counted as often as it is worked on.
  void expect(std::size_t problems) { expected_ = problems; }
  void finished(std::size_t problems) { finished_ += problems; }
  /// `part`: how much of this problem is done, 0 to 1.
  void progress(const Workload& workload, const std::string& what, double part) const;

  void refuse(Refusal refusal);
  /// False in a second round over the problems, whose refusals are known from the first.
  void tell_refusals(bool tell) { tells_refusals_ = tell; }

  /// To the rows of the report, or to those that failed.
  void add(Row row);
  /// The row of the same implementation and case; null when there is none.
  Row* find(const Row& like);

  /// The end of the run.
  Report take();

 private:
  const Observer& observer_;
  std::size_t expected_ = 0;
  std::size_t finished_ = 0;
  bool tells_refusals_ = true;
  Report report_;
};

}  // namespace tmaops::bench
