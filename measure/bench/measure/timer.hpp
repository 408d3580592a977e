// Times calls, on the CPU or on a GPU.
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

/// What a planned call costs the thread that makes it, in microseconds, what a launch of an empty kernel in the same
/// mode costs at the same time, and what the call costs without a plan, where it can be made so.
struct HostCost {
  double call_us = 0;
  double launch_us = 0;
  std::optional<double> fresh_us{};
};
/// The lower quartiles; nothing where there are no bursts. Interrupts and other tenants of a machine only add to a
/// thread's times, so a median moves with the share of the run that was disturbed, and a minimum with the number of
/// bursts.
std::optional<HostCost> undisturbed(std::span<const HostCost> bursts);

/// Measures back-to-back calls. One implementation per kind of device.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Seconds for `count` calls that go round the list, starting with calls[first % calls.size()].
  virtual double seconds(const std::vector<Call>& calls, std::int64_t first, std::int64_t count) = 0;
  /// Runs one call and waits for it.
  virtual void run(const Call& call) = 0;
  /// The same between cudaProfilerStart and cudaProfilerStop, so that a profiler sees this call alone.
  virtual void run_profiled(const Call& call) { run(call); }
  /// The means over one burst of calls of each kind, none of which is waited for. `fresh`: the same calls without a
  /// plan, or none. `seconds_each` is about what a call takes on the GPU; `dependent` means programmatic dependent
  /// launch. Nothing on a CPU, where a call returns with its result.
  virtual std::optional<HostCost> host_cost(const std::vector<Call>& /*calls*/, const std::vector<Call>& /*fresh*/,
                                            double /*seconds_each*/, bool /*dependent*/) {
    return {};
  }
  /// The clock at the end of the last seconds(); the second call returns nothing, and so does one on a CPU.
  virtual std::optional<ClockReading> take_clocks() { return {}; }
  /// Why the reasons that hold a GPU's clock down cannot be read; empty when they can.
  virtual std::string clocks_problem() const { return {}; }
};

std::unique_ptr<Timer> make_cpu_timer();
/// Events around replays of a graph of the calls. An untimed replay runs before each timed one, so that the GPU never
/// waits for the host.
std::unique_ptr<Timer> make_cuda_timer(Device device);

/// Waits, for a limited time, until no other thread of this process or of its children runs any more. OpenMP's workers
/// spin after their work, and would take a processor away from whatever is timed next.
void wait_until_quiet();

}  // namespace tmaops::bench
