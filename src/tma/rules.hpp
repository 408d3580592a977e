// The rules by name, and their checks without the search for a repair.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

enum class RuleId : std::size_t {
#define TMAOPS_TMA_RULE(id, severity, scope, driver, text, source) id,
#include "tma/rules.def"
#undef TMAOPS_TMA_RULE
};

const Rule& rule(RuleId id);

/// Most bytes of one load: the 228 KB of shared memory of a multiprocessor.
inline constexpr std::int64_t kLargestTile = 233472;

/// The findings in the order of the checks.
class Findings {
 public:
  void add(RuleId id, std::string text) { all_.push_back({&rule(id), std::move(text)}); }
  const std::vector<Finding>& all() const { return all_; }
  bool has_errors() const;

 private:
  std::vector<Finding> all_;
};

/// Every rule for maps that the specification breaks.
Findings find_violations(const TensorMapSpec& spec, int compute_capability);
/// Whether a specification keeps every error-level rule.
bool keeps_rules(const TensorMapSpec& spec, int compute_capability);

}  // namespace tmaops::tma
