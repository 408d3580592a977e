// The samples of a group of problems: every implementation in turn, round after round.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/measure/implementation.hpp"
#include "bench/run/block_cycles.hpp"
#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

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

}  // namespace tmaops::bench
