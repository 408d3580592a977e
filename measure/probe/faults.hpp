// The classic mistakes with TMA and the symptom of each. A fault may break the CUDA context or hang the GPU, so each
// runs in a process of its own.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/descriptors.hpp"

namespace tmaops::probe {

/// How another process ended.
struct Child {
  std::string printed;     // to stdout
  int exit_code = -1;      // 128 + signal when a signal ended it
  bool timed_out = false;  // killed after the limit
};

/// Runs a program to its end and drops its stderr. Throws Error cannot_read when it cannot be started.
Child run_child(const std::string& program, const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

struct Fault {
  std::string_view name;
  std::string_view expected;  // beginnings of its outcomes, | between them
  std::string_view text;      // what is wrong
};

/// Every fault, in the order of faults.def.
std::span<const Fault> faults();

/// Whether this outcome is one of those that faults.def expects.
bool is_expected(const Fault& fault, std::string_view outcome);

/// Runs the fault's kernel in this process and returns its outcome: "right: ...", "wrong: 12 of 512 elements", "error
/// cudaErrorMisalignedAddress". The watchdog ends a kernel that hangs: it prints a line to stdout and traps. Throws
/// Error usage for an unknown name, and the errors of a missing device.
std::string run_fault(std::string_view name);

struct FaultRun {
  const Fault* fault = nullptr;
  std::string outcome;  // that of run_fault(), "watchdog: ...", or "killed: ..." when the process was ended
  bool expected = false;
};

/// Starts `program probe-fault NAME` for every fault and ends it after `limit`.
std::vector<FaultRun> run_faults(const std::string& program, std::chrono::milliseconds limit, const Observer& observer);

/// The outcome of a fault from what its process printed and how it ended.
std::string outcome_of(std::string_view printed, int exit_code, bool timed_out);

}  // namespace tmaops::probe
