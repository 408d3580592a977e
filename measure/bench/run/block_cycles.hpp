// Cycles of a kernel's blocks, in a run of their own that is checked like any other.
#pragma once

#include <optional>
#include <string>

#include "bench/measure/implementation.hpp"
#include "bench/run/statistics.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

struct BlockCycles {
  Comparison checked{.ok = true};
  std::optional<Summary> cycles{};  // nothing where the operator counts no cycles, or the result was wrong
};

/// Runs the variant on the inputs number `set` modulo the sets there are; where there is one set, a second time.
BlockCycles count_block_cycles(Workload& workload, Timer& timer, const std::string& variant, int set);

}  // namespace tmaops::bench
