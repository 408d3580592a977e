// What changed since another result file: times, and hardware counters.
#pragma once

#include <compare>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/run/report.hpp"

namespace tmaops::bench {

enum class Change {
  faster,   // the 90th percentile now is below the base's 10th
  slower,   // the 10th percentile now is above the base's 90th
  same,     // the spreads overlap
  missing,  // not in the new results
  added     // not in the base
};
std::string_view to_string(Change change);

/// Which row of a result file.
struct RowName {
  std::string op;
  std::string name;
  std::string dtype;
  std::string device;
  std::string temperature;
  std::string implementation;
  friend auto operator<=>(const RowName&, const RowName&) = default;
};

struct Difference {
  RowName row{};
  Kind kind = Kind::variant;
  Change change = Change::same;
  double base_us = 0;
  double us = 0;
  /// us / base_us; 0 when one of them is missing.
  double ratio() const { return base_us > 0 ? us / base_us : 0; }
  /// A variant that both have timed.
  bool counts() const { return kind == Kind::variant && base_us > 0 && us > 0; }
};

/// Compares the rows of the same name in two result files that passed check_schema().
std::vector<Difference> compare(const nlohmann::ordered_json& now, const nlohmann::ordered_json& base);

struct CounterDifference {
  RowName row{};
  std::string counter;
  double base = 0;
  double now = 0;
};

/// The counters of rows that both files have counted: the duration, and those whose spreads do not overlap.
std::vector<CounterDifference> compare_counters(const nlohmann::ordered_json& now, const nlohmann::ordered_json& base);

/// Variants that are slower beyond the noise and by more than `allowed` (0.05: 5 %). Peers and ceilings do not count.
std::vector<Difference> regressions(const std::vector<Difference>& differences, double allowed);

}  // namespace tmaops::bench
