// For every rule: specifications (or loads) just outside of its edge, and just inside. The tests of the rules and the
// descriptor matrix of `tmaops probe` both go through them.
#pragma once

#include <vector>

#include "tma/rules.hpp"

namespace tmaops::probe {

struct RuleExample {
  tma::RuleId id;
  bool breaks;
  tma::TensorMapSpec spec;
  tma::TileLoad load{};          // looked at for load rules only
  int compute_capability = 100;  // for which `breaks` holds
};

std::vector<RuleExample> rule_examples();

}  // namespace tmaops::probe
