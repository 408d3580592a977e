// The rules by name, their checks, and the search for a specification near a broken one that keeps them.
#pragma once

#include <cstdint>
#include <optional>
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

/// The smallest set of these changes that gives a valid specification: reversed order of the dimensions, a stride list
/// of the right length, a padded pitch, a swizzle wide enough for the row, a box split into several loads, an inner box
/// rounded up to 16 bytes, no swizzle, other element strides, fill or address. Nothing when no set does.
std::optional<Proposal> propose(const TensorMapSpec& spec, const Findings& found, int compute_capability);

}  // namespace tmaops::tma
