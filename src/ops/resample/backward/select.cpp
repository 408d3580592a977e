// Which variant runs a backward pass when the caller names none.
#include "ops/resample/backward/problem.hpp"

namespace tmaops::ops::resample_backward {

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name,
                                          VariantTable<Problem, Arguments, Config> table) {
  return name.empty() ? best_choice(table, problem, device) : named_choice(table, name, problem, device);
}

}  // namespace tmaops::ops::resample_backward
