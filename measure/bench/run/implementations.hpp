// Makes what is compared on a problem: the variants that it asks for, and the peers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/measure/implementation.hpp"
#include "bench/peers/peers.hpp"
#include "bench/run/options.hpp"
#include "bench/run/recorder.hpp"
#include "bench/workloads/wanted_variants.hpp"
#include "bench/workloads/workload.hpp"
#include "config/settings.hpp"

namespace tmaops::bench {

class ImplementationFactory {
 public:
  ImplementationFactory(Device device, const RunOptions& options, const Observer& observer, Timer& timer, Recorder& log)
      : device_(device),
        options_(options),
        timer_(timer),
        log_(log),
        peers_({options.python, observer.interrupted, observer.note}, timer) {}

  /// All that take the workload, bound to every set of its tensors. Refuses those that were asked for and do not.
  /// `in_process`: without the peers that run in a process of their own. Throws Error as wanted_variants() does.
  std::vector<std::unique_ptr<Implementation>> of(const Settings& problem, const Workload& workload, bool in_process);
  /// Whether the user or the problem of the last of() names a peer.
  bool asked_for(const std::string& peer) const;
  /// Frees what belongs to earlier workloads.
  void forget() { peers_.forget(); }

 private:
  using Found = std::vector<std::unique_ptr<Implementation>>;
  void add_tunings(const Workload& workload, Found& to);
  void add_variants(const WantedVariants& wanted, const Workload& workload, Found& to);
  void add_variant(const Workload& workload, const std::string& name, const std::string& variant, Found& to) const;
  void add_peer(const std::string& peer, const Workload& workload, bool in_process, Found& to);
  void keep_wanted(const Workload& workload, Found& found);

  Device device_;
  const RunOptions& options_;
  Timer& timer_;
  Recorder& log_;
  Peers peers_;
  std::vector<std::string> asked_{};  // peers that the problem asks for
};

}  // namespace tmaops::bench
