// The classic mistakes with TMA and the symptom that each gives. A fault may break the CUDA context or hang the GPU, so
// each runs in a process of its own.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/descriptors.hpp"

namespace tmaops::probe {

struct Fault {
  std::string_view name;
  std::string_view expected;  // how its outcomes begin, | between them
  std::string_view text;      // what is wrong
};

/// Every fault, in the order of faults.def.
std::span<const Fault> faults();

/// Whether this outcome is one of those that faults.def expects.
bool is_expected(const Fault& fault, std::string_view outcome);

/// Runs the fault's kernel in this process and says what came of it: "right: ...", "wrong: 12 of 512 elements",
/// "error cudaErrorMisalignedAddress". A hang ends in the kernel's own watchdog, which prints a line to stdout and
/// traps. Throws Error usage for an unknown name, device errors where there is none.
std::string run_fault(std::string_view name);

struct FaultRun {
  const Fault* fault = nullptr;
  std::string outcome;  // as of run_fault(), or "watchdog: ...", or "killed: ..." when the process had to be ended
  bool expected = false;
};

/// Starts `program` anew for every fault, as `program probe-fault NAME`, and ends it after `limit`.
std::vector<FaultRun> run_faults(const std::string& program, std::chrono::milliseconds limit, const Observer& observer);

/// What a process printed and how it ended, as an outcome.
std::string outcome_of(std::string_view printed, int exit_code, bool timed_out);

}  // namespace tmaops::probe
