// Which variant runs when the caller names none.
#include "ops/tile_load/problem.hpp"

namespace tmaops::ops::tile_load {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::tile_load
