// Which variant counts violations when the caller names none: the first of the table.
#include "ops/resample/violations/problem.hpp"

namespace tmaops::ops::resample_violations {

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  return name.empty() ? best_choice(variants(), problem, device) : named_choice(variants(), name, problem, device);
}

}  // namespace tmaops::ops::resample_violations
