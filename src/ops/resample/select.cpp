// Which variant runs a problem when the caller names none: the first of the list that takes it.
#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::resample
