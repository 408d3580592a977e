// Specifications and loads just outside and just inside the edge of every rule. The tests of the rules and the matrix
// of `tmaops probe` go through them.
#pragma once

#include <vector>

#include "tma/rules.hpp"

namespace tmaops::probe {

struct RuleExample {
  tma::RuleId id;
  bool breaks;
  tma::TensorMapSpec spec;
  tma::TileLoad load{};          // of load rules only
  int compute_capability = 100;  // for which `breaks` holds
};

std::vector<RuleExample> rule_examples();

}  // namespace tmaops::probe
