// The samples of a group of problems: every implementation in turn, round after round.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/implementation.hpp"
#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "bench/run/statistics.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// Cycles of a kernel's blocks, in a run of their own that is checked like any other.
struct BlockCycles {
  Comparison checked{.ok = true};
  std::optional<Summary> cycles{};  // nothing where the operator counts no cycles, or the result was wrong
};

/// One implementation while it is timed.
struct Timed {
  std::unique_ptr<Implementation> implementation;
  Comparison error;
  std::int64_t calls = 1;         // per sample
  std::int64_t next = 0;          // set to go on with
  double estimate = 0;            // seconds of one call
  double spent = 0;               // seconds
  bool lost = false;              // its process ended
  std::vector<double> samples{};  // microseconds per call
  std::vector<ClockReading> clocks{};
  std::vector<HostCost> host{};  // a burst after each sample
  BlockCycles cycles{};
};

/// A problem while it is worked on.
struct TimedProblem {
  std::unique_ptr<Workload> workload;
  std::vector<Timed> timed{};
};

/// Fills the samples, clocks and host costs of all that was verified. A peer whose process ends meanwhile is lost,
/// which is refused; the others go on. When the run is interrupted the samples so far are there.
void sample_in_turn(std::vector<TimedProblem>& running, const RunOptions& options, Timer& timer, Recorder& log);

/// Runs the variant on the inputs number `set` modulo the sets there are; where there is one set, a second time.
BlockCycles count_block_cycles(Workload& workload, Timer& timer, const std::string& variant, int set);

}  // namespace tmaops::bench
