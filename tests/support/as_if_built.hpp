// Tables of variants for tests of what is chosen, in builds with and without kernels.
#pragma once

#include <vector>

#include "core/registry.hpp"

namespace tmaops::test {

/// A copy of a table in which every variant whose supports() is in this build counts as built. Nothing of it may be
/// run.
template <class Problem, class Arguments, class Config>
std::vector<Variant<Problem, Arguments, Config>> as_if_built(
    std::span<const Variant<Problem, Arguments, Config>> table) {
  std::vector<Variant<Problem, Arguments, Config>> all(table.begin(), table.end());
  for (auto& variant : all)
    if (variant.supports != nullptr && variant.plan == nullptr)
      variant.plan = [](const Problem&, const Arguments&, const Config&) { return Work(); };
  return all;
}

}  // namespace tmaops::test
