// Something that can be checked and timed on a workload: a variant, a peer, a ceiling.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/nvml.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// Ends the names of rows with programmatic dependent launch.
inline constexpr std::string_view kDependentSuffix = "_pdl";

enum class Kind { variant, peer, ceiling };
/// "variant", "peer" or "ceiling".
std::string_view to_string(Kind kind);

/// What a call costs the thread that makes it, in microseconds, and beside it, taken in the same millisecond, a launch
/// of an empty kernel in the same mode.
struct HostCost {
  double call_us = 0;
  double launch_us = 0;
};
/// The lower quartiles; none of no bursts. What disturbs a thread only adds to its times, most of them while a machine
/// is shared, and for seconds on end: a median moves with the share of the run that was disturbed, a minimum with the
/// number of bursts.
std::optional<HostCost> undisturbed(std::span<const HostCost> bursts);

/// Measures back-to-back calls. One implementation per kind of device; the CPU's is make_cpu_timer(). A GPU's records
/// events around replays of a graph of the calls.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Seconds for `count` calls that go round the list, starting with calls[first % calls.size()].
  virtual double seconds(const std::vector<Call>& calls, std::int64_t first, std::int64_t count) = 0;
  /// Runs one call and waits for it.
  virtual void run(const Call& call) = 0;
  /// The same where a profiler sees it and nothing else (cudaProfilerStart and Stop around it).
  virtual void run_profiled(const Call& call) { run(call); }
  /// The mean over one burst of calls, none of which is waited for. `seconds_each`: about what a call takes on the GPU;
  /// `dependent`: with programmatic dependent launch. None on a CPU, where a call returns with its result.
  virtual std::optional<HostCost> host_cost(const std::vector<Call>& /*calls*/, double /*seconds_each*/,
                                            bool /*dependent*/) {
    return {};
  }
  /// The clock at the end of the last seconds(), once. None on a CPU.
  virtual std::optional<ClockReading> take_clocks() { return {}; }
  /// Why it is not known what holds the clock of a GPU down; else empty.
  virtual std::string clocks_problem() const { return {}; }
};

std::unique_ptr<Timer> make_cpu_timer();

/// Waits until no other thread of this process or of its children runs any more (at most 50 ms). OpenMP's workers spin
/// for 7 ms after their work, and would take a processor away from whatever is timed next.
void wait_until_quiet();

class Implementation {
 public:
  Implementation(std::string name, Kind kind, std::string selected)
      : name_(std::move(name)), kind_(kind), selected_(std::move(selected)) {}
  virtual ~Implementation() = default;
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  /// Name of the variant that runs; empty for peers and ceilings.
  const std::string& selected() const { return selected_; }

  /// Runs once on the given set with the output poisoned before, and compares with the reference.
  virtual Comparison verify(Workload& workload, int set, double tolerance) = 0;
  /// Seconds for `count` calls on the sets in turn.
  virtual double seconds(std::int64_t first, std::int64_t count) = 0;
  /// Timer::host_cost() of its calls; none of ceilings but `empty`, and of what runs in another process.
  virtual std::optional<HostCost> host_cost(double /*seconds_each*/) { return {}; }
  /// What it launches in this process, one call per set; empty when it runs elsewhere.
  virtual const std::vector<Call>& calls() const;

 private:
  std::string name_;
  Kind kind_;
  std::string selected_;
};

/// What launches in this process: calls on fixed buffers, one per set.
class InProcess : public Implementation {
 public:
  double seconds(std::int64_t first, std::int64_t count) override { return timer_.seconds(calls_, first, count); }
  const std::vector<Call>& calls() const override { return calls_; }

 protected:
  InProcess(std::string name, Kind kind, std::string selected, Timer& timer, std::vector<Call> calls = {})
      : Implementation(std::move(name), kind, std::move(selected)), timer_(timer), calls_(std::move(calls)) {}

  Timer& timer_;
  std::vector<Call> calls_;
};

/// A variant, or a peer that runs in this process on the workload's own tensors: one call per set.
std::unique_ptr<Implementation> make_local(std::string name, Kind kind, std::string selected, std::vector<Call> calls,
                                           Timer& timer);

/// The ceiling: copying memory so that as many bytes are read and written as the case's floor.
std::unique_ptr<Implementation> make_copy(const Workload& workload, Timer& timer);

}  // namespace tmaops::bench
