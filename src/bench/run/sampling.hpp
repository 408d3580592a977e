// The samples of a group of problems: every implementation in turn, round after round.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "bench/run/timed.hpp"

namespace tmaops::bench {

/// Fills the samples, clocks and host costs of all that was verified. A peer whose process ends meanwhile is lost,
/// which is refused; the others go on. When the run is interrupted the samples so far are there.
void sample_in_turn(std::vector<TimedProblem>& running, const RunOptions& options, Timer& timer, Recorder& log);

}  // namespace tmaops::bench
