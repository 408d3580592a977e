// Something that can be checked and timed on a workload: a variant, a peer, a ceiling.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/timer.hpp"
#include "bench/workloads/workload.hpp"
#include "core/enum_name.hpp"

namespace tmaops::bench {

/// Ends the names of rows with programmatic dependent launch.
inline constexpr std::string_view kDependentSuffix = "_pdl";

enum class Kind { variant, peer, ceiling };
inline constexpr std::string_view kKinds[] = {"variant", "peer", "ceiling"};
inline std::string_view to_string(Kind kind) { return enum_name(kKinds, kind); }

class Implementation {
 public:
  Implementation(std::string name, Kind kind, std::string selected, std::vector<Call> calls = {})
      : calls_(std::move(calls)), name_(std::move(name)), kind_(kind), selected_(std::move(selected)) {}
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
  const std::vector<Call>& calls() const { return calls_; }

 protected:
  std::vector<Call> calls_;

 private:
  std::string name_;
  Kind kind_;
  std::string selected_;
};

/// What launches in this process: calls on fixed buffers, one per set. Those of variants and peers work on the
/// workload's own tensors; a ceiling has buffers, and a check, of its own.
class InProcess : public Implementation {
 public:
  /// `fresh`: the same calls without a plan, where there are such.
  InProcess(std::string name, Kind kind, std::string selected, Timer& timer, std::vector<Call> calls = {},
            std::vector<Call> fresh = {})
      : Implementation(std::move(name), kind, std::move(selected), std::move(calls)),
        timer_(timer),
        fresh_(std::move(fresh)) {}

  Comparison verify(Workload& workload, int set, double tolerance) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    return workload.check(set, tolerance > 0 ? tolerance : workload.variant_tolerance(selected()));
  }
  double seconds(std::int64_t first, std::int64_t count) override { return timer_.seconds(calls_, first, count); }
  std::optional<HostCost> host_cost(double seconds_each) override {
    if (kind() == Kind::ceiling) return {};
    return timer_.host_cost(calls_, fresh_, seconds_each, name().ends_with(kDependentSuffix));
  }

 protected:
  Timer& timer_;

 private:
  std::vector<Call> fresh_;
};

}  // namespace tmaops::bench
