// Something that can be checked and timed on a workload: a variant, a peer, a ceiling.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/timer.hpp"
#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// Ends the names of rows with programmatic dependent launch.
inline constexpr std::string_view kDependentSuffix = "_pdl";

enum class Kind { variant, peer, ceiling };
/// "variant", "peer" or "ceiling".
std::string_view to_string(Kind kind);

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
  /// Timer::host_cost() of its calls. Nothing for ceilings, except `empty`, and for what runs in another process.
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

/// A variant, or a peer that runs in this process on the workload's own tensors: one call per set. `fresh`: the same
/// calls without a plan, where there are such.
std::unique_ptr<Implementation> make_local(std::string name, Kind kind, std::string selected, std::vector<Call> calls,
                                           Timer& timer, std::vector<Call> fresh = {});

}  // namespace tmaops::bench
