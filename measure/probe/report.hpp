// Everything a probe found, and its result file (schema 1, described in docs/tma.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "probe/descriptors.hpp"
#include "probe/faults.hpp"
#include "probe/loads.hpp"

namespace tmaops::probe {

struct Report {
  std::uint64_t seed = 1;
  int compute_capability = 0;
  std::vector<MatrixRow> matrix{};
  SpecificationRun specifications{};
  LoadRun loads{};
  std::vector<FaultRun> faults{};
  bool complete = true;  // false: interrupted

  /// 130 when interrupted; 1 when the driver, the hardware or a fault did something unexplained; else 0.
  int exit_code() const;
};

/// The examples of one rule in the matrix.
struct RuleSummary {
  const tma::Rule* rule = nullptr;
  int inside = 0, inside_accepted = 0;
  int outside = 0, outside_asked = 0, outside_refused = 0;
  int quirks = 0, disagreements = 0;
  /// "agrees", "quirk" or "disagrees"; "not asked" when no example outside fits the driver's parameters; "hidden" when
  /// the examples inside are refused too, as with packed types on a GPU that has none.
  std::string_view verdict() const;
};
std::vector<RuleSummary> summarise(const std::vector<MatrixRow>& matrix);

/// The result file. `machine` is copied into it.
nlohmann::ordered_json to_json(const Report& report, const nlohmann::ordered_json& machine);

}  // namespace tmaops::probe
