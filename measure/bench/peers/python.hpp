// Peers that live in a Python process of their own, which is started once and kept for the run. It gets the workload's
// inputs through shared memory, and its outputs come back the same way to be checked.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/implementation.hpp"
#include "bench/peers/python_process.hpp"

namespace tmaops::bench {

/// What peers in Python need of the run.
struct PythonSettings {
  std::string interpreter{};                       // empty: TMAOPS_PYTHON, then python3
  std::function<bool()> interrupted{};             // may be left out
  std::function<void(const std::string&)> note{};  // may be left out
};

class SharedMemory;

class PythonPeers {
 public:
  /// Starts the interpreter. Throws Error cannot_read with what to install when there is none, or when numpy is
  /// missing.
  explicit PythonPeers(const PythonSettings& settings);

  /// "python 3.11.2, numpy 2.4.6, torch 2.13.0+cpu".
  const std::string& versions() const { return versions_; }
  /// Hands the workload's inputs to the process, which keeps those of earlier ones.
  void load(const Workload& workload);
  /// Lets the process forget all workloads; their peers must not be used any more.
  void forget();
  /// Makes the peer on the workload loaded last; it must not outlive this. Throws Error variant_refuses with the reason
  /// when it does not take the case.
  std::unique_ptr<Implementation> make(const std::string& peer);

 private:
  class Peer;
  /// The tensors of a workload, and where in the memory they lie.
  struct Loaded {
    std::shared_ptr<SharedMemory> memory;
    std::vector<std::size_t> offsets;
  };

  LineProcess lines_;
  std::vector<Loaded> loaded_;
  std::string versions_;
};

}  // namespace tmaops::bench
