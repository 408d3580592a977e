// Which variant runs a backward pass when the caller names none.
#include "ops/resample/backward/problem.hpp"

namespace tmaops::ops::resample_backward {

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name,
                                          VariantTable<Problem, Arguments, Config> table) {
  if (!name.empty()) return named_choice(table, name, problem, device);
  // The gradients of many targets per sample fill no window, and a warp per sample then has enough to do.
  const bool many = device.device.type == DeviceType::cuda && problem.target >= 8 * problem.source;
  return best_choice(table, problem, device, [&](const auto& variant, const Config&) -> std::optional<double> {
    if (variant.name == "row_gather") return many ? 0 : 2;
    if (variant.name == "window_gather") return 1;
    return std::nullopt;
  });
}

}  // namespace tmaops::ops::resample_backward
