// Which variant runs a backward pass when the caller names none: the first of the list that takes it.
#include "ops/resample/problem_backward.hpp"

namespace tmaops::ops::resample_backward {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::resample_backward
