// Other libraries that do the same work, to compare with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/implementation.hpp"
#include "bench/report.hpp"
#include "bench/runner.hpp"

namespace tmaops::bench {

/// oneDNN called by hand on the workload's tensors. Throws Error variant_refuses with the reason when oneDNN or this
/// peer does not take the case. Only in builds with oneDNN.
std::unique_ptr<Implementation> make_onednn(const Workload& workload, Timer& timer);

/// Peers that live in a Python process of their own, which is started once and kept for the run. It gets the
/// workload's inputs through shared memory, and its outputs come back the same way to be checked.
class PythonPeers {
 public:
  /// Starts the interpreter. Throws Error cannot_read with what to install when there is none, or when numpy is
  /// missing.
  PythonPeers(const RunOptions& options, const Observer& observer);
  ~PythonPeers();
  PythonPeers(const PythonPeers&) = delete;
  PythonPeers& operator=(const PythonPeers&) = delete;

  /// "python 3.11.2, numpy 2.4.6, torch 2.13.0+cpu".
  const std::string& versions() const;
  /// Hands the workload's inputs to the process.
  void load(const Workload& workload);
  /// The peer on the loaded workload. Throws Error variant_refuses with the reason when it does not take the case.
  std::unique_ptr<Implementation> make(const std::string& peer, const Workload& workload);

 private:
  class Process;
  std::shared_ptr<Process> process_;
};

}  // namespace tmaops::bench
