// Which variant runs a backward pass when the caller names none: the first of the list that takes it, but for one case.
#include "ops/resample/problem_backward.hpp"

namespace tmaops::ops::resample_backward {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  // Many targets per sample: their gradients fill no window, and a warp per sample has enough to do (256,100->2048,256:
  // 197 us against 213).
  if (device.device.type == DeviceType::cuda && problem.target >= 8 * problem.source)
    return named_variant(variants(), "row_gather", problem, device);
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::resample_backward
