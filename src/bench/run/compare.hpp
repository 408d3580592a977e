// What got faster or slower since another result file.
#pragma once

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

struct Difference {
  std::string op;
  std::string name;
  std::string implementation;
  Kind kind = Kind::variant;
  std::string dtype;
  std::string temperature;
  Change change = Change::same;
  double base_us = 0;
  double us = 0;
  /// us / base_us; 0 when one of them is missing.
  double ratio() const { return base_us > 0 ? us / base_us : 0; }
  /// A variant that both have timed.
  bool counts() const { return kind == Kind::variant && base_us > 0 && us > 0; }
};

/// Compares row by row (operator, case, dtype, device, temperature, implementation) with the rows of a result file that
/// passed check_schema().
std::vector<Difference> compare(const Report& report, const nlohmann::ordered_json& base);

/// Variants that are slower beyond the noise and by more than `allowed` (0.05: 5 %). Peers and ceilings do not count.
std::vector<Difference> regressions(const std::vector<Difference>& differences, double allowed);

}  // namespace tmaops::bench
