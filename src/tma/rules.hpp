// The rules by name, and the checks without the search for a repair.
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

/// What is found, in the order of the checks.
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

/// Swizzle span in bytes: 32, 64 or 128; 0 without swizzle.
int span_of(Swizzle swizzle);
/// u4x16_align16 or u6x16_align16: 16 elements with a gap behind them.
inline bool packed_16(ElementType type) {
  return type == ElementType::u4x16_align16 || type == ElementType::u6x16_align16;
}
/// The next multiple of `multiple`; a value too near to the end of the type's range stays as it is.
std::int64_t rounded_up(std::int64_t value, std::int64_t multiple);
/// Bytes that a number of elements takes in global memory, rounded up.
std::int64_t bytes_of(ElementType type, std::int64_t elements);
/// Bytes that a row of the box takes in shared memory, where u4x16_align16 and u6x16_align16 have gaps.
std::int64_t shared_row_bytes(ElementType type, std::int64_t elements);

}  // namespace tmaops::tma
